"""From what Harbor reports of a trial to an outcome. Decisions only.

The one file that is read, in ``native_sample``, is a native agent's trajectory.
"""

import math
from typing import Any

from harbor.models.trial.result import ExceptionInfo, TimingInfo, TrialResult

from harbor_backend.agents.wiring import ENDPOINTLESS
from harbor_backend.native_sample import native_sample
from harbor_backend.trials import TrialRecord
from osmosis_ai.rollout.execution import NO_GRADER, refusal, wants_grading
from osmosis_ai.rollout.types.execution import ExecutionOutcome, ExecutionResult
from osmosis_ai.rollout.types.sample import RolloutSample
from osmosis_ai.rollout.types.status import RolloutErrorCategory, RolloutStatus

_TIMEOUTS = {
    "AgentTimeoutError", "AgentSetupTimeoutError", "VerifierTimeoutError", "DeadlineExceededError",
}  # fmt: skip
_INFRASTRUCTURE = {
    "SandboxLostError", "EngineError", "EnvironmentStartTimeoutError", "HealthcheckError",
    "APIError", "DockerException", "HostLostError", "HostRefusedError", "NoHostError",
    "SandboxCreationError", "ModelUnreachableError", "SkypilotError",
}  # fmt: skip
_VALIDATION = {
    "SandboxBuildFailedError", "RewardFileNotFoundError", "RewardFileEmptyError",
    "VerifierOutputParseError", "FileNotFoundError", "ValueError", "ValidationError", "TypeError",
    "UvError", "TaskError", "ImportError",
}  # fmt: skip

NO_REWARD = (
    "The task's verifier wrote no 'reward': tests/test.sh must write a number to "
    "/logs/verifier/reward.txt, or an object with the key 'reward' to reward.json"
)


def outcome_of(record: TrialRecord, trial: TrialResult) -> ExecutionOutcome:
    """Map a finished trial, once, to the outcome that every backend would have."""
    workflow = record.workflow or native_workflow(record, trial)
    grader = _grader(record, trial, workflow)
    return ExecutionOutcome(workflow=workflow, grader=grader)


def native_workflow(record: TrialRecord, trial: TrialResult) -> ExecutionResult:
    """The workflow's result where Harbor itself ran the agent, or none ran at all."""
    error = trial.exception_info
    failed = error is not None and phase_of(trial, error) != "verifier"
    metrics = _token_totals(trial)
    sample: RolloutSample | None = None
    native = record.program.native_agent
    if native is not None and native not in ENDPOINTLESS:
        sample = native_sample(record, trial, metrics)
    elif not failed:
        messages = record.request.prompt or [{"role": "user", "content": trial.task_name}]
        sample = RolloutSample(messages=messages, label=record.request.label, metrics=metrics)
    if error is not None and failed:
        return failed_trial(trial, error, sample)
    return ExecutionResult(status=RolloutStatus.SUCCESS, sample=sample)


def failed_trial(
    trial: TrialResult, error: ExceptionInfo, sample: RolloutSample | None = None
) -> ExecutionResult:
    """A failed result that carries Harbor's exception."""
    phase = phase_of(trial, error)
    return ExecutionResult(
        status=RolloutStatus.FAILURE,
        sample=sample,
        err_message=error.exception_message or error.exception_type,
        err_category=category_of(error.exception_type, phase),
    )


def category_of(exception_type: str, phase: str) -> RolloutErrorCategory:
    """Map the name of an exception class, and the phase it ended, to a category."""
    if exception_type in _TIMEOUTS:
        return RolloutErrorCategory.TIMEOUT
    if exception_type in _INFRASTRUCTURE:
        return RolloutErrorCategory.INFRASTRUCTURE_ERROR
    if exception_type in _VALIDATION:
        return RolloutErrorCategory.VALIDATION_ERROR
    if phase in {"setup", "environment_setup"}:
        return RolloutErrorCategory.INFRASTRUCTURE_ERROR
    return RolloutErrorCategory.AGENT_ERROR


def phase_of(trial: TrialResult, error: ExceptionInfo | None = None) -> str:
    """Name the phase that an exception ended, or the last one that began."""
    if trial.verifier is not None and (error is None or _began_before(trial.verifier, error)):
        return "verifier"
    if trial.agent_execution is not None or trial.step_results:
        return "agent"
    if trial.agent_setup is not None:
        return "agent_setup"
    return "environment_setup" if trial.environment_setup is not None else "setup"


def diagnostics(record: TrialRecord, trial: TrialResult, environment: str) -> dict[str, Any]:
    """What an operator wants to know of a trial: phase, timings, exception, notes."""
    error = trial.exception_info
    steps = trial.step_results or []
    timings = {
        "queued": record.queued_sec,
        "environment_setup": _seconds(trial.environment_setup),
        "agent_setup": _seconds(trial.agent_setup),
        "agent": _summed(trial.agent_execution, [step.agent_execution for step in steps]),
        "verifier": _summed(trial.verifier, [step.verifier for step in steps]),
        "total": _seconds(TimingInfo(started_at=trial.started_at, finished_at=trial.finished_at)),
    }
    phase = phase_of(trial, error)
    report: dict[str, Any] = {
        "backend": "harbor",
        "environment": environment,
        "phase": phase,
        "harbor_exception_type": None if error is None else error.exception_type,
        "category": None if error is None else category_of(error.exception_type, phase),
        "timings_sec": {
            **{name: value for name, value in timings.items() if value is not None},
            **record.timings,
        },
        "notes": list(record.notes),
    }
    return report


def _grader(
    record: TrialRecord, trial: TrialResult, workflow: ExecutionResult
) -> ExecutionResult | None:
    if not wants_grading(record.request, workflow):
        return None
    if record.grader is not None:
        return record.grader
    sample = workflow.sample or RolloutSample()
    if trial.verifier_result is not None and trial.verifier_result.rewards is not None:
        return _rewarded(sample, trial.verifier_result.rewards)
    if trial.exception_info is not None:
        return failed_trial(trial, trial.exception_info, sample)
    for step in trial.step_results or []:
        if step.exception_info is not None:
            return failed_trial(trial, step.exception_info, sample)
    return refusal(NO_REWARD if trial.verifier is not None else NO_GRADER, sample=sample)


def _rewarded(sample: RolloutSample, rewards: dict[str, float | int]) -> ExecutionResult:
    value = rewards.get("reward")
    if value is None or not math.isfinite(value):
        return refusal(f"{NO_REWARD} (it wrote {rewards!r})", sample=sample)
    update: dict[str, Any] = {"reward": float(value)}
    if len(rewards) > 1:
        update["extra_fields"] = {**sample.extra_fields, "rewards": dict(rewards)}
    return ExecutionResult(
        status=RolloutStatus.SUCCESS, sample=sample.model_copy(update=update, deep=True)
    )


def _began_before(timing: TimingInfo, error: ExceptionInfo) -> bool:
    return timing.started_at is not None and _utc(timing.started_at) <= _utc(error.occurred_at)


def _utc(moment: Any) -> float:
    return float(moment.timestamp())


def _seconds(timing: TimingInfo | None) -> float | None:
    if timing is None or timing.started_at is None or timing.finished_at is None:
        return None
    return float((timing.finished_at - timing.started_at).total_seconds())


def _summed(timing: TimingInfo | None, steps: list[TimingInfo | None]) -> float | None:
    """The trial's own seconds, or its steps' where Harbor times only these."""
    own = _seconds(timing)
    known = [seconds for step in steps if (seconds := _seconds(step)) is not None]
    return own if own is not None or not known else sum(known)


def _token_totals(trial: TrialResult) -> dict[str, Any]:
    result = trial.agent_result
    if result is None:
        return {}
    totals = {
        "input_tokens": result.n_input_tokens,
        "cached_tokens": result.n_cache_tokens,
        "output_tokens": result.n_output_tokens,
        "cost_usd": result.cost_usd,
    }
    return {name: value for name, value in totals.items() if value is not None}
