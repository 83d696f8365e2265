"""What a backend is asked to do, and what it answers."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, FiniteFloat, field_serializer

from osmosis_ai.common.texts import shortened
from osmosis_ai.rollout.types.identifiers import RolloutId
from osmosis_ai.rollout.types.json_safe import to_json_value
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

    A success with an ``err_category`` is that of an agent that failed, and whose work
    was graded all the same: the reward counts, and the ``err_`` fields say how it failed.
    ``err_message`` holds at most 16,384 characters: of a longer one its beginning
    and end. ``extra_fields`` are diagnostics for the operator and never go on the wire.
    """

    status: RolloutStatus
    sample: RolloutSample | None = None
    err_message: Annotated[str, AfterValidator(shortened)] | None = None
    err_category: RolloutErrorCategory | None = None
    extra_fields: dict[str, Any] = {}

    @property
    def is_scored(self) -> bool:
        """Whether it has a reward that counts; means and pass rates are over these alone."""
        sample = self.sample
        scored = sample is not None and sample.reward is not None and not sample.remove_sample
        return scored and self.status is RolloutStatus.SUCCESS

    @field_serializer("err_message", "extra_fields", when_used="json")
    def _in_json(self, value: object) -> Any:
        return to_json_value(value)


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
