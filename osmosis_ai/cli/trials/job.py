"""The job directory beside a run, for Harbor's own tools. It decides nothing over a trial."""

import asyncio
import logging
import math
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from harbor.models.environment_type import EnvironmentType
from harbor.models.trial.config import EnvironmentConfig

from harbor_backend.admin import (
    ENDPOINTLESS,
    JobDescription,
    JobDirectory,
    JobTask,
    TrialEnd,
    TrialError,
    error_kind,
)
from osmosis_ai.cli.output import say
from osmosis_ai.cli.trials.choices import EnvironmentName
from osmosis_ai.cli.trials.plan import Plan, Trial
from osmosis_ai.cli.trials.results import TrialReport
from osmosis_ai.rollout.trajectory.report import LlmCallMetrics
from osmosis_ai.rollout.types.status import RolloutStatus

logger = logging.getLogger(__name__)


class JobRecorder:
    """Writes a plan's trials into its output directory as a Harbor job, as they end.

    What cannot be written is logged once, and said by ``close``; nothing is raised.
    """

    def __init__(self, plan: Plan, native_model: str) -> None:
        self._plan = plan
        self._native_model = native_model
        self._job: JobDirectory | None = None
        self._problems: list[str] = []
        self._lock = threading.Lock()  # a step that was cancelled goes on in its thread

    async def begin(self, trials: Sequence[Trial]) -> None:
        """Write what is going to be run."""

        def begin() -> None:
            job = JobDirectory(self._plan.output, _description(self._plan, self._native_model))
            job.begin([self._task(trial) for trial in trials])
            self._job = job

        await self._attempt("the job was not begun", begin)

    async def add(self, report: TrialReport, calls: Sequence[LlmCallMetrics] | None) -> None:
        """Write what came of a trial; its files must be in its directory by now."""
        end = TrialEnd(
            name=report.trial.rollout_id,
            task=self._task(report.trial),
            rewards=_rewards(report),
            error=_error(report),
            calls=calls,
            seconds=report.seconds,
            ended_at=datetime.now(UTC),
        )
        if self._job is not None:
            job = self._job
            await self._attempt(f"{end.name} is not in the job", lambda: job.add(end))

    async def close(self) -> None:
        """Write the job's result, and say what is missing."""
        if self._job is not None:
            await self._attempt("the job's result is not the last", self._job.close)
        if self._problems:
            more = len(self._problems) - 1
            rest = f" (and {more} more)" if more else ""
            say(
                f"osmosis: {self._plan.output} is no complete job directory for Harbor's tools: "
                f"{self._problems[0]}{rest}"
            )

    def _task(self, trial: Trial) -> JobTask:
        return JobTask(self._plan.path(trial.task), self._plan.tasks_dir.name)

    async def _attempt(self, what: str, step: Callable[[], None]) -> None:
        def locked() -> None:
            with self._lock:
                step()

        try:
            await asyncio.to_thread(locked)
        except Exception as exc:  # whatever it is, the trial has its result
            if not self._problems:
                logger.warning("%s: %s", self._plan.output, what, exc_info=exc)
            self._problems.append(f"{what}: {' '.join(str(exc).split()) or type(exc).__name__}")


def _description(plan: Plan, native_model: str) -> JobDescription:
    is_native = ":" not in plan.agent
    is_url = plan.model is not None and "://" in plan.model
    model = native_model if is_native else plan.model
    is_named = model is not None and "://" not in model and plan.agent not in ENDPOINTLESS
    is_remote = plan.environment is EnvironmentName.SKYPILOT
    kind = EnvironmentType.SKYPILOT if is_remote else EnvironmentType.DOCKER
    return JobDescription(
        agent=plan.agent,
        is_native=is_native,
        model=model if is_named else None,
        model_url=plan.model if is_url else None,
        grader=plan.grader,
        environment=EnvironmentConfig(type=kind),
        n_concurrent=plan.n_concurrent,
    )


def _rewards(report: TrialReport) -> dict[str, float | int]:
    # A grader's author may have put anything there; Harbor's results hold numbers.
    numbers = {
        name: value
        for name, value in report.rewards.items()
        if isinstance(value, int | float) and math.isfinite(value)
    }
    return numbers or ({} if report.reward is None else {"reward": report.reward})


def _error(report: TrialReport) -> TrialError | None:
    if report.category is None and report.status == RolloutStatus.SUCCESS:
        return None
    kind = error_kind(report.category, report.phase)
    return TrialError(kind, report.message or "no message")
