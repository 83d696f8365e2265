"""What Harbor recorded of a trial, made to say what the engine says."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from harbor.models.agent.context import AgentContext
from harbor.models.task.config import TaskConfig
from harbor.models.trial.config import TrialConfig
from harbor.models.trial.result import (
    AgentInfo,
    ExceptionInfo,
    ModelInfo,
    StepResult,
    TrialResult,
)
from harbor.models.verifier.result import VerifierResult

from harbor_backend.jobs.configuration import exportable
from harbor_backend.jobs.usage import agent_context, filled
from harbor_backend.jobs.values import WORKFLOW, JobDescription, TrialEnd
from osmosis_ai import __version__
from osmosis_ai.common.texts import clean_text, shortened
from osmosis_ai.rollout.trajectory.report import LlmCallMetrics

_WORKFLOW_FAILED = "WorkflowFailedError"


def trial_result(
    recorded: TrialResult | None,
    end: TrialEnd,
    about: JobDescription,
    config: TrialConfig,
    calls: Sequence[LlmCallMetrics],
) -> TrialResult:
    """The result of a trial in a job.

    Times, steps and the sandbox's records are Harbor's, where it recorded any;
    whether there is a reward, and which, is the engine's word.
    """
    base = recorded or _unrecorded(end, about, config)
    return base.model_copy(
        update={
            "task_name": _task_name(end, base),
            "trial_name": end.name,
            "trial_uri": (config.trials_dir / end.name).resolve().as_uri(),
            "task_id": config.task.get_task_id(),
            "source": config.task.source,
            "config": exportable(config),
            "agent_info": _agent_info(base.agent_info, about),
            "agent_result": _agent_result(base, calls),
            "verifier_result": (VerifierResult(rewards=dict(end.rewards)) if end.rewards else None),
            "exception_info": _exception(base.exception_info, end),
            "step_results": _clipped_steps(base.step_results),
        }
    )


def _unrecorded(end: TrialEnd, about: JobDescription, config: TrialConfig) -> TrialResult:
    """A result for a trial that never was Harbor's."""
    finished = end.ended_at or datetime.now(UTC)
    return TrialResult(
        task_name=config.task.get_task_id().get_name(),
        trial_name=end.name,
        trial_uri="",
        task_id=config.task.get_task_id(),
        task_checksum="",
        config=config,
        agent_info=AgentInfo(name=about.agent, version=str(__version__)),
        started_at=finished - timedelta(seconds=max(0.0, end.seconds)),
        finished_at=finished,
    )


def _task_name(end: TrialEnd, base: TrialResult) -> str:
    """The task's name by its own ``task.toml``, so that all its trials are of one task."""
    if end.task.group is not None:
        return end.task.group
    try:
        config = TaskConfig.model_validate_toml((end.task.path / "task.toml").read_text("utf-8"))
    except (OSError, ValueError):
        return base.task_name
    return end.task.path.name if config.task is None else config.task.name


def _agent_info(recorded: AgentInfo, about: JobDescription) -> AgentInfo:
    if about.is_native:
        return recorded
    provider, _, model = (about.model or "").rpartition("/")
    info = ModelInfo(name=model, provider=provider or None) if model else None
    version = recorded.version if recorded.name == WORKFLOW else str(__version__)
    return AgentInfo(name=about.agent, version=version, model_info=info)


def _agent_result(base: TrialResult, calls: Sequence[LlmCallMetrics]) -> AgentContext | None:
    seen = agent_context(calls)
    if base.agent_result is None and seen is None:
        return None
    own = base.agent_result
    return filled(None if own is None or own.is_empty() else own, seen) or own


def _exception(recorded: ExceptionInfo | None, end: TrialEnd) -> ExceptionInfo | None:
    if recorded is None:
        if end.error is None:
            return None
        return ExceptionInfo(
            exception_type=end.error.kind,
            exception_message=_kept(end.error.message),
            exception_traceback="",
            occurred_at=end.ended_at or datetime.now(UTC),
        )
    kind = recorded.exception_type
    if kind == _WORKFLOW_FAILED and end.error is not None:
        kind = end.error.kind  # by which Harbor knows whether the reward counts
    return _clipped_info(recorded).model_copy(update={"exception_type": kind})


def _clipped_steps(steps: Sequence[StepResult] | None) -> list[StepResult] | None:
    if steps is None:
        return None
    return [
        step.model_copy(update={"exception_info": _clipped_info(step.exception_info)})
        if step.exception_info
        else step
        for step in steps
    ]


def _clipped_info(info: ExceptionInfo) -> ExceptionInfo:
    texts = ("exception_message", "exception_traceback")
    return info.model_copy(update={name: _kept(getattr(info, name)) for name in texts})


def without_tokens(result: TrialResult) -> TrialResult:
    """The same without token ids, for keeping all of a job's results in memory."""
    if result.agent_result is None:
        return result
    slim = result.agent_result.model_copy(update={"rollout_details": None, "metadata": None})
    return result.model_copy(update={"agent_result": slim})


def _kept(text: str) -> str:
    return shortened(clean_text(text))
