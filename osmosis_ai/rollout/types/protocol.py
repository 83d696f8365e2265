"""Messages on the wire, of both published protocol generations."""

from typing import Annotated, Any

from pydantic import BaseModel, Field, FiniteFloat, model_validator

from osmosis_ai.rollout.types.identifiers import RolloutId
from osmosis_ai.rollout.types.messages import Messages
from osmosis_ai.rollout.types.sample import RolloutSample
from osmosis_ai.rollout.types.status import GraderStatus, RolloutErrorCategory, RolloutStatus

POLLING_LEASE_HEADER = "X-Osmosis-Rollout-Lease"

type _NonEmpty = Annotated[str, Field(min_length=1)]
type _Positive = Annotated[FiniteFloat, Field(gt=0)]


class RolloutInitRequest(BaseModel):
    """Ask a rollout server to run one rollout. Timeouts are seconds."""

    rollout_id: RolloutId
    initial_messages: Messages
    label: str | None = None
    metadata: dict[str, Any] | None = None
    chat_completions_url: str
    llm_api_key: _NonEmpty | None = None
    grade: bool = True
    agent_timeout_sec: FiniteFloat | None = None
    grader_timeout_sec: FiniteFloat | None = None
    extra_fields: dict[str, Any] | None = None


class RolloutInitResponse(BaseModel):
    """Admission: the token and the windows (seconds) of the polling lease."""

    rollout_id: str
    status: RolloutStatus = RolloutStatus.QUEUED
    polling_lease_token: _NonEmpty
    result_wait_timeout_sec: _Positive
    polling_lease_timeout_sec: _Positive

    @model_validator(mode="after")
    def _lease_outlives_wait(self) -> "RolloutInitResponse":
        if self.polling_lease_timeout_sec <= self.result_wait_timeout_sec:
            raise ValueError(
                "polling_lease_timeout_sec must exceed result_wait_timeout_sec, got "
                f"{self.polling_lease_timeout_sec} and {self.result_wait_timeout_sec}"
            )
        return self


class RolloutResultResponse(BaseModel):
    """A poll's answer; in flight only the id and the status mean something."""

    rollout_id: str
    status: RolloutStatus
    sample: RolloutSample | None = None
    err_message: str | None = None
    err_category: RolloutErrorCategory | None = None


class RolloutStatusResponse(BaseModel):
    """Where a rollout is, without blocking."""

    rollout_id: str
    status: RolloutStatus
    reward: FiniteFloat | None = None
    err_message: str | None = None


class RolloutCompleteRequest(BaseModel):
    """Callback protocol: the workflow phase ended."""

    rollout_id: str
    status: RolloutStatus
    extra_fields: dict[str, Any] | None = None
    err_message: str | None = None
    err_category: RolloutErrorCategory | None = None


class GraderInitRequest(BaseModel):
    """Callback protocol: ask for the grading of a finished rollout."""

    rollout_id: RolloutId
    sample: RolloutSample | None = None
    label: str | None = None
    metadata: dict[str, Any] | None = None


class GraderInitResponse(BaseModel):
    """Callback protocol: grading was admitted."""

    rollout_id: str
    status: GraderStatus = GraderStatus.PENDING


class GraderCompleteRequest(BaseModel):
    """Callback protocol: the grader phase ended."""

    rollout_id: str
    status: GraderStatus
    sample: RolloutSample | None = None
    err_message: str | None = None
    err_category: RolloutErrorCategory | None = None


class CancelRolloutsRequest(BaseModel):
    """Which rollouts to cancel: exactly one of the three selectors."""

    ids: list[str] | None = None
    prefix: str | None = None
    all: bool = False

    @model_validator(mode="after")
    def _one_selector(self) -> "CancelRolloutsRequest":
        chosen = [self.ids is not None, self.prefix is not None, self.all]
        if sum(chosen) != 1:
            raise ValueError("give exactly one of 'ids', 'prefix' and 'all'")
        return self


class CancelRolloutsResponse(BaseModel):
    """What happened to each selected rollout, by id."""

    dispositions: dict[str, str]
