"""A job directory that is being written: trial by trial, whole after each."""

import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from uuid import uuid4

from harbor.job_plan import JobPlan
from harbor.models.job.config import JobConfig
from harbor.models.job.result import JobResult
from harbor.models.trial.config import TrialConfig
from harbor.models.trial.result import TrialResult

from harbor_backend.jobs.configuration import job_config
from harbor_backend.jobs.layout import RECORDS, is_directory, is_there
from harbor_backend.jobs.locks import JobLocks
from harbor_backend.jobs.reading import read_file
from harbor_backend.jobs.results import without_tokens
from harbor_backend.jobs.statistics import job_result
from harbor_backend.jobs.trial import write_trial
from harbor_backend.jobs.values import JobDescription, JobTask, TrialEnd
from osmosis_ai.common.files import write_atomically

_REWRITE_SEC = 1.0
"""How long the job's own result may lag behind its trials while it runs."""


class JobConflictError(ValueError):
    """A directory holds something that this job cannot be added to; the text says what."""


class JobDirectory:
    """Writes a job to ``path``, or adds to the job that is there; ``begin`` comes first.

    Not for several threads at once.

    Raises:
        JobConflictError: another job is there, or files of its names that are no job's.
        OSError: what is there cannot be read.
    """

    def __init__(self, path: Path, about: JobDescription) -> None:
        self.path = path
        self._about = about
        self._id = uuid4()
        self._started_at = datetime.now()
        self._results: dict[str, TrialResult] = {}
        self._tasks: list[JobTask] = []
        self._written_at = 0.0
        self._config = job_config(path, about, [])
        self._locks: JobLocks | None = None
        if any(is_there(path / name) for name in RECORDS):
            self._take_over()

    def begin(self, tasks: Sequence[JobTask]) -> None:
        """Write what is going to be run: these tasks, one trial each, besides what is there.

        Raises:
            OSError: it cannot be written.
        """
        self._tasks.extend(tasks)
        self._config = job_config(self.path, self._about, self._tasks)
        self._locks = JobLocks(self._config, self._tasks, self._id)
        self._write_result(is_finished=False)
        config, lock = self._config, self._locks.job
        _write(self.path / "config.json", config.model_dump_json(indent=4, exclude_defaults=True))
        if lock is not None:
            _write(self.path / "lock.json", lock.model_dump_json(indent=4, exclude_none=True))

    def add(self, end: TrialEnd) -> None:
        """Make the rollout's files in ``path/<name>`` a trial of this job.

        Raises:
            OSError, ValueError: they could not be; the trial has no ``result.json`` then.
        """
        config = self._trial_config(end)
        lock = None if self._locks is None else self._locks.of(end.task)
        result = write_trial(self.path / end.name, end, self._about, config, lock)
        self._results[end.name] = without_tokens(result)
        if time.monotonic() - self._written_at >= _REWRITE_SEC:
            self._write_result(is_finished=False)

    def close(self) -> None:
        """Write the job's result; it is finished when every trial has ended.

        Raises:
            OSError: it cannot be written.
        """
        self._write_result(is_finished=len(self._results) >= len(self._tasks))

    def _trial_config(self, end: TrialEnd) -> TrialConfig:
        once = self._config.model_copy(update={"n_attempts": 1})
        (config,) = JobPlan.build_trial_configs(once, [end.task.config], job_id=self._id)
        return config.model_copy(update={"trial_name": end.name})

    def _write_result(self, *, is_finished: bool) -> None:
        result = job_result(
            list(self._results.values()),
            job_id=self._id,
            n_total=len(self._tasks),
            started_at=self._started_at,
            is_finished=is_finished,
        )
        _write(
            self.path / "result.json", result.model_dump_json(indent=4, exclude={"trial_results"})
        )
        self._written_at = time.monotonic()

    def _take_over(self) -> None:
        """Know the trials of the job that is there already."""
        try:
            there = JobConfig.model_validate_json(read_file(self.path / "config.json") or b"")
            known = JobResult.model_validate_json(read_file(self.path / "result.json") or b"")
        except ValueError as exc:
            raise JobConflictError(
                f"{self.path} has a {', '.join(RECORDS)} that is no Harbor job's: choose another "
                "directory"
            ) from exc
        for name in ("agents", "environment", "verifier"):
            if getattr(there, name) != getattr(self._config, name):
                raise JobConflictError(
                    f"{self.path} holds a job with other {name} (its config.json says which): "
                    "choose another directory"
                )
        self._id, self._started_at = known.id, known.started_at
        for folder in sorted(filter(is_directory, self.path.iterdir())):
            self._take_over_trial(folder)

    def _take_over_trial(self, folder: Path) -> None:
        try:
            result = TrialResult.model_validate_json(read_file(folder / "result.json") or b"")
        except ValueError:
            return  # no trial, or an unfinished one
        task = result.config.task
        if task.path is not None:
            self._results[folder.name] = without_tokens(result)
            self._tasks.append(JobTask(task.path, task.source))


def _write(path: Path, text: str) -> None:
    write_atomically(path, f"{text}\n")
