"""What an operator wants to know of a trial: phase, timings, exception, notes."""

from typing import Any

from harbor.models.trial.result import TimingInfo, TrialResult

from harbor_backend.core.trial import Trial
from harbor_backend.trial.categories import agents_error, category_of, phase_of


def diagnostics(trial: Trial, result: TrialResult, environment: str) -> dict[str, Any]:
    """A report that goes beside the outcome and decides nothing; times are seconds."""
    error = result.exception_info or agents_error(result)
    steps = result.step_results or []
    timings = {
        "queued": trial.results.queued_sec,
        "environment_setup": _seconds(result.environment_setup),
        "agent_setup": _seconds(result.agent_setup),
        "agent": _summed(result.agent_execution, [step.agent_execution for step in steps]),
        "verifier": _summed(result.verifier, [step.verifier for step in steps]),
        "total": _seconds(TimingInfo(started_at=result.started_at, finished_at=result.finished_at)),
    }
    phase = phase_of(result, error)
    is_workflow = trial.spec.program.native_agent is None
    return {
        "backend": "harbor",
        "environment": environment,
        "phase": phase,
        "harbor_exception_type": None if error is None else error.exception_type,
        "category": (
            None
            if error is None
            else category_of(
                error.exception_type,
                phase,
                is_workflow=is_workflow,
                message=error.exception_message,
            )
        ),
        "timings_sec": {
            **{name: value for name, value in timings.items() if value is not None},
            **trial.results.timings,
        },
        "runs": trial.results.runs,
        "notes": trial.results.notes,
        "integrity": trial.results.integrity,
    }


def _seconds(timing: TimingInfo | None) -> float | None:
    if timing is None or timing.started_at is None or timing.finished_at is None:
        return None
    return float((timing.finished_at - timing.started_at).total_seconds())


def _summed(timing: TimingInfo | None, steps: list[TimingInfo | None]) -> float | None:
    """The trial's own seconds, or its steps' where Harbor times only these."""
    own = _seconds(timing)
    known = [seconds for step in steps if (seconds := _seconds(step)) is not None]
    return own if own is not None or not known else sum(known)
