"""The locks of a job: what exactly was run, by digest, as Harbor computes it."""

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from harbor.job_plan import JobPlan
from harbor.models.job.config import JobConfig
from harbor.models.job.lock import JobLock, TrialLock, build_job_lock
from harbor.tasks.client import TaskDownloadResult

from harbor_backend.jobs.values import JobTask

if TYPE_CHECKING:
    from pathlib import Path

logger = logging.getLogger(__name__)


class JobLocks:
    """The lock of a job and those of its trials, one per task.

    Where a task's files are not there, nothing can be locked: there is no lock, and
    Harbor makes one if it is ever asked to go on with the job.
    """

    def __init__(self, config: JobConfig, tasks: Sequence[JobTask], job_id: UUID) -> None:
        self.job: JobLock | None = None
        self._trials: Mapping[Path, TrialLock] = {}
        # Each task's files are read once, however often it was tried.
        distinct = {task.path: task for task in tasks}
        if not all((path / "task.toml").is_file() for path in distinct):
            return
        configs = JobPlan.build_trial_configs(
            config.model_copy(update={"n_attempts": 1}),
            [task.config for task in distinct.values()],
            job_id=job_id,
        )
        there = {
            one.task.get_task_id(): TaskDownloadResult(
                path=path, download_time_sec=0.0, cached=True
            )
            for path, one in zip(distinct, configs, strict=True)
        }
        try:
            job = build_job_lock(config=config, trial_configs=configs, task_download_results=there)
        except (OSError, ValueError) as exc:
            logger.warning("The job has no lock.json: %s", exc)
            return
        self._trials = dict(zip(distinct, job.trials, strict=True))
        every = [self._trials[task.path] for task in tasks]
        self.job = job.model_copy(update={"trials": every})

    def of(self, task: JobTask) -> TrialLock | None:
        """The lock of a trial of this task."""
        return self._trials.get(task.path)
