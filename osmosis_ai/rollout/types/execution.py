"""What a backend is asked to do, and what it answers."""

from typing import Any

from pydantic import BaseModel, Field, FiniteFloat

from osmosis_ai.rollout.types.identifiers import RolloutId
from osmosis_ai.rollout.types.messages import Messages
from osmosis_ai.rollout.types.sample import RolloutSample
from osmosis_ai.rollout.types.status import RolloutErrorCategory, RolloutStatus


class ExecutionRequest(BaseModel):
    """One rollout to run.

    Timeouts are seconds: ``None`` is unbounded, zero and below is already
    expired. ``label`` reaches the grader only, never the workflow.
    """

    id: RolloutId
    prompt: Messages = Field(default_factory=list)
    label: str | None = None
    metadata: dict[str, Any] | None = None
    agent_timeout_sec: FiniteFloat | None = None
    grader_timeout_sec: FiniteFloat | None = None
    grade: bool = True


class ExecutionResult(BaseModel):
    """The result of one phase (workflow or grader).

    ``extra_fields`` are diagnostics for the operator and never go on the wire.
    """

    status: RolloutStatus
    sample: RolloutSample | None = None
    err_message: str | None = None
    err_category: RolloutErrorCategory | None = None
    extra_fields: dict[str, Any] = {}


class ExecutionOutcome(BaseModel):
    """Both phases of a rollout; ``grader`` is ``None`` when nothing was graded."""

    workflow: ExecutionResult
    grader: ExecutionResult | None = None

    @property
    def result(self) -> ExecutionResult:
        """The result to announce: the first failure, else the last phase."""
        if self.workflow.status is not RolloutStatus.SUCCESS:
            if self.workflow.sample is None and self.grader is not None:
                return self.workflow.model_copy(update={"sample": self.grader.sample})
            return self.workflow
        return self.grader or self.workflow

    @property
    def result_to_save(self) -> ExecutionResult:
        """The result to persist: the grader's when it carries a sample."""
        if self.grader is not None and self.grader.sample is not None:
            return self.grader
        return self.workflow
