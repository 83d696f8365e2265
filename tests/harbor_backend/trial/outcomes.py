"""A trial after Harbor ran it, and the outcome that is expected of it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harbor_backend.program.program import Program
from harbor_backend.trial.outcome import outcome_of
from harbor_backend.trial.sample_reward import NO_REWARD
from osmosis_ai.rollout import ExecutionOutcome, ExecutionResult, RolloutSample, RolloutStatus
from osmosis_ai.rollout.types.status import RolloutErrorCategory
from tests.harbor_backend.reports import reached, trial_result
from tests.harbor_backend.specs import living, make_spec, workflow_program

TIMEOUT = RolloutErrorCategory.TIMEOUT
VALIDATION = RolloutErrorCategory.VALIDATION_ERROR
INFRASTRUCTURE = RolloutErrorCategory.INFRASTRUCTURE_ERROR
AGENT = RolloutErrorCategory.AGENT_ERROR

ASKED = [{"role": "user", "content": "How many?"}]
TALK = [*ASKED, {"role": "assistant", "content": "Four."}]


def sample(**fields: Any) -> RolloutSample:
    """What the workflow brought, with some fields changed."""
    return RolloutSample(**{"messages": TALK, "label": "blue", "metrics": {"steps": 2}, **fields})


def success(made: RolloutSample | None) -> ExecutionResult:
    return ExecutionResult(status=RolloutStatus.SUCCESS, sample=made)


def failed(
    category: RolloutErrorCategory,
    message: str = "it broke",
    made: RolloutSample | None = None,
) -> ExecutionResult:
    return ExecutionResult(
        status=RolloutStatus.FAILURE, sample=made, err_message=message, err_category=category
    )


def no_reward() -> ExecutionResult:
    return failed(VALIDATION, NO_REWARD, sample())


def noted(result: ExecutionResult, failure: ExecutionResult) -> ExecutionResult:
    """A result with an agent's failure beside it."""
    fields = ("err_message", "err_category")
    return result.model_copy(update={name: getattr(failure, name) for name in fields})


WORKED = success(sample())
GRADED = success(sample(reward=0.5, metrics={"steps": 2, "judged": True}))
VERIFIED = {**reached("verifier")}


@dataclass
class Case:
    """A trial after Harbor ran it, and its outcome's two results.

    ``workflow`` and ``grader`` are what our plug-ins brought back; ``harbor`` are
    fields of Harbor's result.
    """

    expected: ExecutionResult
    graded: ExecutionResult | None = None
    program: Program = field(default_factory=workflow_program)
    workflow: ExecutionResult | None = None
    grader: ExecutionResult | None = None
    request: dict[str, Any] = field(default_factory=dict)
    harbor: dict[str, Any] = field(default_factory=lambda: dict(VERIFIED))
    notes: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)


async def assert_outcome(case: Case, folder: Path) -> None:
    spec = make_spec(folder, program=case.program, request={"prompt": ASKED, **case.request})
    async with living(spec) as trial:
        for name, text in case.files.items():
            path = spec.trial_dir / name
            path.parent.mkdir(parents=True)
            path.write_text(text)
        trial.rollout.workflow, trial.results.grader = case.workflow, case.grader
        outcome = outcome_of(trial, trial_result(folder, **case.harbor))
        assert outcome == ExecutionOutcome(workflow=case.expected, grader=case.graded)
        assert trial.results.notes == case.notes
