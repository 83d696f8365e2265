"""The contract of files and messages between the host and a sandbox."""

import base64
import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, FiniteFloat

from osmosis_ai.common.json_bounds import check_json_bounds
from osmosis_ai.common.texts import bounded_notes
from osmosis_ai.rollout.portable import portable_sample
from osmosis_ai.rollout.types.execution import ExecutionRequest, ExecutionResult
from osmosis_ai.rollout.types.identifiers import RolloutId
from osmosis_ai.rollout.types.messages import Messages
from osmosis_ai.rollout.types.sample import RolloutSample
from osmosis_ai.rollout.types.status import RolloutErrorCategory, RolloutStatus

INPUT_FILENAME = "container_input.json"
RESULT_FILENAME = "container_result.json"
AGENT_LOGS_DIR = "/logs/agent"
VERIFIER_LOGS_DIR = "/logs/verifier"
ARTIFACTS_DIR = "/logs/artifacts"

RUNTIME_DIR = "/opt/osmosis"
RUNTIME_PYTHON = f"{RUNTIME_DIR}/python/bin/python3"
CHANNEL_DIR = "/run/osmosis"
GATEWAY_SOCKET = f"{CHANNEL_DIR}/gateway.sock"
JUDGE_SOCKET = f"{CHANNEL_DIR}/judge.sock"
GATEWAY_PORT = 18417
"""Where the relay listens in a sandbox, below the ports that a kernel gives away by itself."""

MAX_INPUT_BYTES = 256 * 1024 * 1024
MAX_RESULT_BYTES = 8 * 1024 * 1024
"""Unless the backend was made with another ``max_result_bytes``."""
MAX_RESULT_ITEMS = 1_000_000
_MAX_RESULT_DEPTH = 512
"""Messages nest 100 levels deep, and each takes up to four in JSON."""

_BYTES = "$osmosis:bytes"
_ESCAPED = "$osmosis:dict"


class ContainerInput(BaseModel):
    """What one phase in a sandbox needs.

    The label is present in the grader's phase only. ``workflow`` to
    ``grader_config`` are ``module:attr`` strings inside the bundle. The sample
    is the one that the host collected.
    """

    model_config = ConfigDict(extra="forbid")

    version: Literal[1] = 1
    rollout_id: RolloutId
    prompt: Messages = []
    label: str | None = None
    metadata: dict[str, Any] | None = None
    chat_completions_url: str = ""
    api_key: str | None = None
    preview_path: str | None = None
    gateway_socket: str | None = None
    agent_timeout_sec: FiniteFloat | None = None
    grader_timeout_sec: FiniteFloat | None = None
    queued_sec: float = 0.0
    workflow: str | None = None
    workflow_config: str | None = None
    grader: str | None = None
    grader_config: str | None = None
    sample: RolloutSample | None = None

    def request(self) -> ExecutionRequest:
        """The request as the execution core takes it."""
        return ExecutionRequest(
            id=self.rollout_id,
            prompt=self.prompt,
            label=self.label,
            metadata=self.metadata,
            agent_timeout_sec=self.agent_timeout_sec,
            grader_timeout_sec=self.grader_timeout_sec,
        )


class ContainerResult(BaseModel):
    """What one phase in a sandbox yields; the whole result crosses, nothing is projected.

    ``same_trajectory`` stands for a trajectory that is the messages, which cross once.
    """

    model_config = ConfigDict(extra="ignore")

    version: Literal[1] = 1
    status: RolloutStatus
    sample: RolloutSample | None = None
    same_trajectory: bool = False
    err_message: str | None = None
    err_category: RolloutErrorCategory | None = None
    warnings: list[str] = []

    @classmethod
    def of(cls, result: ExecutionResult) -> "ContainerResult":
        """The container's view of a result of the execution core."""
        sample = result.sample
        is_same = sample is not None and sample.trajectory_messages == sample.messages
        if sample is not None and is_same:
            sample = sample.model_copy(update={"trajectory_messages": None})
        return cls(
            status=result.status,
            sample=sample,
            same_trajectory=is_same,
            err_message=result.err_message,
            err_category=result.err_category,
            warnings=result.extra_fields.get("warnings", []),
        )

    def result(self) -> ExecutionResult:
        """The execution core's view, as the host may use it.

        Only success and failure are believed of a sandbox; its sample is made
        portable once more, its texts are shortened.

        Raises:
            ValueError: it claims another status, or its sample is not valid.
        """
        if self.status not in {RolloutStatus.SUCCESS, RolloutStatus.FAILURE}:
            raise ValueError(f"a sandbox cannot report the status {self.status.value!r}")
        sample = self.sample
        if sample is not None and self.same_trajectory:
            sample = sample.model_copy(update={"trajectory_messages": sample.messages})
        return ExecutionResult(
            status=self.status,
            sample=None if sample is None else portable_sample(sample, phase="A sandbox"),
            err_message=self.err_message,
            err_category=self.err_category,
            extra_fields={"warnings": bounded_notes(self.warnings)} if self.warnings else {},
        )


def encode(message: BaseModel) -> bytes:
    """Encode a message as JSON in ASCII; bytes and lone surrogates survive."""
    return json.dumps(_to_json(message.model_dump(mode="python"))).encode("ascii")


def decode_input(data: bytes) -> ContainerInput:
    """Decode what the host sent.

    Raises:
        ValueError: it is larger than 256 MiB, no JSON, or not such a message.
    """
    return _decode(ContainerInput, data, MAX_INPUT_BYTES)


def decode_result(data: bytes, max_bytes: int = MAX_RESULT_BYTES) -> ContainerResult:
    """Decode what a sandbox answered, at a cost that is bounded before anything is parsed.

    Raises:
        ValueError: it is larger, holds over a million values or nests deeper than messages
            may, is no JSON, or not such a message.
    """
    check_json_bounds(
        data, max_bytes=max_bytes, max_items=MAX_RESULT_ITEMS, max_depth=_MAX_RESULT_DEPTH
    )
    return _decode(ContainerResult, data, max_bytes)


def _decode[M: BaseModel](kind: type[M], data: bytes, max_bytes: int) -> M:
    if len(data) > max_bytes:
        raise ValueError(f"{kind.__name__} holds {len(data)} bytes, at most {max_bytes} fit")
    try:
        return kind.model_validate(json.loads(data.decode("utf-8-sig"), object_hook=_from_json))
    except RecursionError as exc:
        raise ValueError(f"{kind.__name__} is nested too deeply") from exc
    except TypeError as exc:
        raise ValueError(f"{kind.__name__} escapes a dictionary wrongly: {exc}") from exc


def _to_json(value: Any) -> Any:
    if isinstance(value, dict):
        plain = {str(key): _to_json(item) for key, item in value.items()}
        if any(key in plain for key in (_BYTES, _ESCAPED)):
            return {_ESCAPED: [[key, item] for key, item in plain.items()]}
        return plain
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    if isinstance(value, bytes):
        return {_BYTES: base64.b64encode(value).decode("ascii")}
    return value


def _from_json(value: dict[str, Any]) -> Any:
    if len(value) == 1:
        if isinstance(text := value.get(_BYTES), str):
            return base64.b64decode(text, validate=True)
        if isinstance(pairs := value.get(_ESCAPED), list):
            return {str(key): item for key, item in pairs}
    return value
