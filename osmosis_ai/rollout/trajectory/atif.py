"""The Agent Trajectory Interchange Format (ATIF), as models of our own.

The rules follow Harbor's published specification of the format (RFC 0001), so
that whatever validates here validates there; Harbor itself is not imported.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

SCHEMA_VERSION: Literal["ATIF-v1.8"] = "ATIF-v1.8"

AGENT_ONLY_FIELDS = (
    "model_name",
    "reasoning_effort",
    "reasoning_content",
    "tool_calls",
    "metrics",
)

type SchemaVersion = Literal[
    "ATIF-v1.0",
    "ATIF-v1.1",
    "ATIF-v1.2",
    "ATIF-v1.3",
    "ATIF-v1.4",
    "ATIF-v1.5",
    "ATIF-v1.6",
    "ATIF-v1.7",
    "ATIF-v1.8",
]
type ImageMediaType = Literal["image/jpeg", "image/png", "image/gif", "image/webp"]
type AudioMediaType = Literal[
    "audio/wav",
    "audio/mpeg",
    "audio/mp4",
    "audio/aac",
    "audio/ogg",
    "audio/flac",
    "audio/webm",
    "audio/aiff",
]


def parse_timestamp(value: str) -> datetime:
    """Return the time that ISO 8601 text names; raises ``ValueError``."""
    return datetime.fromisoformat(value.replace("Z", "+00:00"))


def _iso_8601(value: str) -> str:
    parse_timestamp(value)
    return value


type Timestamp = Annotated[str, AfterValidator(_iso_8601)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, revalidate_instances="always")


class ImageSource(_Model):
    """An image in a file or at a URL; ATIF holds no image bytes."""

    media_type: ImageMediaType
    path: str


class AudioSource(_Model):
    """A sound in a file or at a URL."""

    media_type: AudioMediaType
    path: str
    duration_sec: float | None = Field(default=None, ge=0)


class ContentPart(_Model):
    """One part of a message: a text, or a reference to an image or a sound."""

    type: Literal["text", "image", "audio"]
    text: str | None = None
    source: ImageSource | AudioSource | None = None

    @model_validator(mode="after")
    def _fields_fit_the_type(self) -> "ContentPart":
        if self.type == "text":
            if self.text is None or self.source is not None:
                raise ValueError("a text part needs 'text' and no 'source'")
            return self
        expected = ImageSource if self.type == "image" else AudioSource
        if self.text is not None or not isinstance(self.source, expected):
            raise ValueError(f"a part of type {self.type!r} needs a source of its kind, no 'text'")
        return self


class ToolCall(_Model):
    """A call that the agent made."""

    tool_call_id: str
    function_name: str
    arguments: dict[str, Any]
    extra: dict[str, Any] | None = None


class SubagentTrajectoryRef(_Model):
    """A pointer to the trajectory of an agent that this one delegated to."""

    trajectory_id: str | None = None
    session_id: str | None = None
    trajectory_path: str | None = None
    extra: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _can_be_resolved(self) -> "SubagentTrajectoryRef":
        if self.trajectory_id is None and self.trajectory_path is None:
            raise ValueError("a subagent reference needs 'trajectory_id' or 'trajectory_path'")
        return self


class ObservationResult(_Model):
    """What one call, or the environment, gave back."""

    source_call_id: str | None = None
    content: str | list[ContentPart] | None = None
    subagent_trajectory_ref: list[SubagentTrajectoryRef] | None = None
    extra: dict[str, Any] | None = None


class Observation(_Model):
    """Everything that came back after one step."""

    results: list[ObservationResult]


class Metrics(_Model):
    """What the model calls of one step used; token ids and logprobs are per token."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    prompt_token_ids: list[int] | None = None
    completion_token_ids: list[int] | None = None
    logprobs: list[float] | None = None
    extra: dict[str, Any] | None = None


class FinalMetrics(_Model):
    """Totals over a trajectory."""

    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_cached_tokens: int | None = None
    total_cost_usd: float | None = None
    total_steps: int | None = Field(default=None, ge=0)
    extra: dict[str, Any] | None = None


class Step(_Model):
    """One turn: a message of somebody, with what the agent called and got back."""

    step_id: int = Field(ge=1)
    timestamp: Timestamp | None = None
    source: Literal["system", "user", "agent"]
    model_name: str | None = None
    reasoning_effort: str | float | None = None
    message: str | list[ContentPart]
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None
    observation: Observation | None = None
    metrics: Metrics | None = None
    is_copied_context: bool | None = None
    llm_call_count: int | None = Field(default=None, ge=0)
    extra: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _fields_fit_the_source(self) -> "Step":
        if self.source != "agent":
            self._refuse(AGENT_ONLY_FIELDS, f"source is {self.source!r}, not 'agent'")
        elif self.llm_call_count == 0:
            self._refuse(("metrics", "reasoning_content"), "llm_call_count is 0")
        return self

    @model_validator(mode="after")
    def _results_belong_to_calls(self) -> "Step":
        results = self.observation.results if self.observation else []
        known = {call.tool_call_id for call in self.tool_calls or []}
        for result in results:
            if result.source_call_id is not None and result.source_call_id not in known:
                raise ValueError(
                    f"step {self.step_id}: source_call_id {result.source_call_id!r} is no tool "
                    "call of this step"
                )
        return self

    def _refuse(self, fields: Iterable[str], why: str) -> None:
        for name in fields:
            if getattr(self, name) is not None:
                raise ValueError(f"step {self.step_id}: {name!r} is not allowed because {why}")


class Agent(_Model):
    """Which software acted."""

    name: str
    version: str
    model_name: str | None = None
    tool_definitions: list[dict[str, Any]] | None = None
    extra: dict[str, Any] | None = None


class Trajectory(_Model):
    """A whole document. Steps are numbered from 1 without gaps."""

    schema_version: SchemaVersion = SCHEMA_VERSION
    session_id: str | None = None
    trajectory_id: str | None = None
    agent: Agent
    steps: list[Step] = Field(min_length=1)
    notes: str | None = None
    final_metrics: FinalMetrics | None = None
    continued_trajectory_ref: str | None = None
    extra: dict[str, Any] | None = None
    subagent_trajectories: list["Trajectory"] | None = None

    @model_validator(mode="after")
    def _steps_are_numbered(self) -> "Trajectory":
        for number, step in enumerate(self.steps, start=1):
            if step.step_id != number:
                raise ValueError(f"steps[{number - 1}].step_id must be {number}: {step.step_id}")
        return self

    @model_validator(mode="after")
    def _subagents_are_distinct(self) -> "Trajectory":
        ids = [sub.trajectory_id for sub in self.subagent_trajectories or []]
        if None in ids or len(set(ids)) != len(ids):
            raise ValueError("subagent_trajectories need a trajectory_id each, all different")
        return self

    def to_json_dict(self) -> dict[str, Any]:
        """Return the document as JSON values, without fields that hold nothing."""
        return self.model_dump(mode="json", exclude_none=True)
