"""What Harbor reports of trials that it never ran, for tests of the decisions about them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from harbor.models.trial.config import AgentConfig, TrialConfig
from harbor.models.trial.config import TaskConfig as TaskSource
from harbor.models.trial.result import (
    AgentInfo,
    ExceptionInfo,
    StepResult,
    TimingInfo,
    TrialResult,
)
from harbor.models.verifier.result import VerifierResult

_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)

PHASES = ("setup", "environment_setup", "agent_setup", "agent", "verifier")


def at(seconds: float) -> datetime:
    """A time so many seconds after the trial's beginning."""
    return _BEGAN + timedelta(seconds=seconds)


def timing(began: float | None = None, ended: float | None = None) -> TimingInfo:
    """When a phase began and ended, in seconds after the trial's beginning."""
    return TimingInfo(
        started_at=None if began is None else at(began),
        finished_at=None if ended is None else at(ended),
    )


def error(kind: str, *, message: str = "it broke", seconds: float = 100) -> ExceptionInfo:
    """An exception of a class with this name."""
    return ExceptionInfo(
        exception_type=kind,
        exception_message=message,
        exception_traceback="",
        occurred_at=at(seconds),
    )


def reached(phase: str) -> dict[str, Any]:
    """The timings of a trial that came as far as a phase."""
    fields = ("environment_setup", "agent_setup", "agent_execution", "verifier")
    begun = fields[: PHASES.index(phase)]
    return {field: timing(10 * n, 10 * n + 5) for n, field in enumerate(begun)}


def step(name: str, *, rewards: dict[str, float | int] | None = None, **fields: Any) -> StepResult:
    """The result of one of several steps."""
    verified = None if rewards is None else VerifierResult(rewards=rewards)
    return StepResult(step_name=name, verifier_result=verified, **fields)


def trial_result(
    folder: Path, *, rewards: dict[str, float | int] | None = None, **fields: Any
) -> TrialResult:
    """Harbor's result of the trial ``trial`` of ``specs.make_spec``."""
    config = TrialConfig(
        task=TaskSource(path=folder / "task"),
        trial_name="trial",
        trials_dir=folder,
        agent=AgentConfig(name="nop"),
    )
    return TrialResult(
        **{
            "id": UUID(int=1),
            "task_name": "task",
            "trial_name": "trial",
            "trial_uri": "",
            "task_id": config.task.get_task_id(),
            "task_checksum": "",
            "config": config,
            "agent_info": AgentInfo(name="nop", version="1"),
            "verifier_result": None if rewards is None else VerifierResult(rewards=rewards),
            **fields,
        }
    )
