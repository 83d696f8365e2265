"""Messages on the wire, of both published protocol generations."""

import uuid
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AllowInfNan, BaseModel, ConfigDict, Field, FiniteFloat, Strict, model_validator
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from osmosis_ai.rollout.types.identifiers import RolloutId
from osmosis_ai.rollout.types.messages import Messages
from osmosis_ai.rollout.types.sample import RolloutSample
from osmosis_ai.rollout.types.status import GraderStatus, RolloutErrorCategory, RolloutStatus

POLLING_LEASE_HEADER = "X-Osmosis-Rollout-Lease"

type _NonEmpty = Annotated[str, Field(min_length=1)]
type _Positive = Annotated[FiniteFloat, Field(gt=0)]
# Strict, so that what the published schema calls a number is one.
type _Seconds = Annotated[float, Strict(), AllowInfNan(False)]
type _Bool = Annotated[bool, Strict()]
# A rollout's id as it is written for callers; how it is checked is RolloutId's.
type _Id = Annotated[
    RolloutId,
    Field(json_schema_extra={"minLength": 1, "maxLength": 200, "pattern": r"^[^/\\\x00]+$"}),
]

# The policy's server: an OpenAI-compatible one by its base URL, or one of the gateway's own.
type _Model = Annotated[
    str,
    Field(
        min_length=1,
        json_schema_extra={"pattern": "^(https?://|embedded/|litellm/)[!-~]+$"},
    ),
]
type _CallbackUrl = Annotated[
    str,
    Field(min_length=1, json_schema_extra={"pattern": "^https?://[!-~]+$"}),
]

_EITHER: JsonDict = {
    "anyOf": [
        {"required": ["rollout_id"]},
        {
            "required": ["completion_callback_url"],
            "properties": {"completion_callback_url": {"type": "string"}},
        },
    ],
}


class RolloutInitRequest(BaseModel):
    """Ask a rollout server to run one rollout. Timeouts are seconds.

    With ``completion_callback_url`` the server posts how it ends (the callback
    protocol); without one the caller polls for it, by an id of its own.
    ``llm_api_key`` falls back to ``controller_api_key``. ``on_interrupt`` says
    what becomes of a rollout whose server is stopped or killed: it fails, or it
    is run again from the beginning.
    """

    model_config = ConfigDict(json_schema_extra=_EITHER)

    rollout_id: _Id = Field(default_factory=lambda: uuid.uuid4().hex)
    initial_messages: Messages
    label: str | None = None
    metadata: dict[str, Any] | None = None
    chat_completions_url: _Model
    llm_api_key: _NonEmpty | None = Field(default=None, repr=False)
    grade: _Bool = True
    agent_timeout_sec: _Seconds | None = None
    grader_timeout_sec: _Seconds | None = None
    extra_fields: dict[str, Any] | None = None
    on_interrupt: Literal["fail", "rerun"] = "fail"
    completion_callback_url: _CallbackUrl | None = None
    grader_callback_url: _CallbackUrl | None = None
    controller_api_key: _NonEmpty | None = Field(default=None, repr=False)

    @property
    def protocol(self) -> Literal["polling", "callback"]:
        """Which of the protocols the request speaks."""
        return "polling" if self.completion_callback_url is None else "callback"

    @model_validator(mode="after")
    def _fits_a_protocol(self) -> Self:
        if self.completion_callback_url is None and "rollout_id" not in self.model_fields_set:
            raise PydanticCustomError(
                "no_protocol",
                "the polling protocol needs rollout_id, the callback protocol needs "
                "completion_callback_url: send one of them",
            )
        return self


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


_ONE_SELECTOR: JsonDict = {
    "oneOf": [
        {"required": ["ids"], "properties": {"ids": {"type": "array"}}},
        {"required": ["prefix"], "properties": {"prefix": {"type": "string"}}},
        {"required": ["all"], "properties": {"all": {"const": True}}},
    ]
}


class CancelRolloutsRequest(BaseModel):
    """Which rollouts to cancel: exactly one of the three selectors."""

    model_config = ConfigDict(json_schema_extra=_ONE_SELECTOR)

    ids: list[str] | None = None
    prefix: str | None = None
    all: _Bool = False

    @model_validator(mode="after")
    def _one_selector(self) -> "CancelRolloutsRequest":
        chosen = [self.ids is not None, self.prefix is not None, self.all]
        if sum(chosen) != 1:
            raise ValueError("give exactly one of 'ids', 'prefix' and 'all'")
        return self


class CancelRolloutsResponse(BaseModel):
    """What happened to each selected rollout, by id."""

    dispositions: dict[str, str]


class RolloutRecord(RolloutStatusResponse):
    """What a server knows of a rollout, without its result.

    ``attempts`` is above 1 when servers ended while they ran it. ``served_until``
    is when its result is forgotten and its id is free again.
    """

    protocol: Literal["polling", "callback"]
    err_category: RolloutErrorCategory | None = None
    attempts: int
    server_id: str
    admitted_at: datetime
    changed_at: datetime
    finished_at: datetime | None = None
    served_until: datetime | None = None


class RolloutList(BaseModel):
    """A page of rollouts, newest first. ``next_cursor`` asks for the page after it."""

    rollouts: list[RolloutRecord]
    next_cursor: str | None = None


class ArtifactFile(BaseModel):
    """A file that a rollout left; ``path`` is relative to its artifacts."""

    path: str
    size: int
    modified_at: datetime


class ArtifactList(BaseModel):
    """The files of a rollout, by path. ``truncated`` says that there are more."""

    rollout_id: str
    artifacts: list[ArtifactFile]
    truncated: bool = False
