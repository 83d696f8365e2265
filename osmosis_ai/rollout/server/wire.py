"""From results to what goes on the wire. Decisions only, no I/O."""

import json
import logging
from collections.abc import Mapping
from typing import Any

from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.rollout.types.sample import RolloutSample
from osmosis_ai.rollout.types.status import RolloutStatus

logger = logging.getLogger(__name__)


def encode_progress(rollout_id: str, status: RolloutStatus) -> bytes:
    """Encode the answer for a rollout in flight: nothing but id and status."""
    return _encode(_response(rollout_id, ExecutionResult(status=status), None))


def encode_result(rollout_id: str, result: ExecutionResult) -> bytes:
    """Encode a ``RolloutResultResponse`` as JSON; whatever the sample holds, it encodes.

    A sample that JSON cannot hold loses its messages and telemetry, and keeps
    reward, label and ``remove_sample``.
    """
    if result.sample is None:
        return _encode(_response(rollout_id, result, None))
    reward = wire_reward(result)
    try:
        return _encode(_response(rollout_id, result, _sample(result.sample, reward)))
    except (TypeError, ValueError, RecursionError) as exc:
        logger.warning("Rollout %s: sample sent without its messages: %s", rollout_id, exc)
        return _encode(_response(rollout_id, result, _bare_sample(result.sample, reward)))


def wire_reward(result: ExecutionResult) -> float | None:
    """The reward that a trainer may use: only of a success that is not to be dropped."""
    sample = result.sample
    if sample is None or sample.remove_sample or result.status is not RolloutStatus.SUCCESS:
        return None
    return sample.reward


def clean_text(text: str) -> str:
    """Replace what UTF-8 cannot hold: lone surrogates become U+FFFD, pairs one character."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _response(
    rollout_id: str, result: ExecutionResult, sample: dict[str, Any] | None
) -> dict[str, Any]:
    return {
        "rollout_id": rollout_id,
        "status": result.status.value,
        "sample": sample,
        "err_message": result.err_message,
        "err_category": result.err_category and result.err_category.value,
    }


def _sample(sample: RolloutSample, reward: float | None) -> dict[str, Any]:
    fields = sample.json_safe_copy().model_dump(exclude={"trajectory_messages"})
    return {**fields, "reward": reward}


def _bare_sample(sample: RolloutSample, reward: float | None) -> dict[str, Any]:
    return _sample(RolloutSample(label=sample.label, remove_sample=sample.remove_sample), reward)


def _encode(value: Mapping[str, Any]) -> bytes:
    # Encoding first finds what is not JSON, and leaves only JSON's types to clean.
    plain = json.loads(json.dumps(value, allow_nan=False))
    return json.dumps(_clean(plain), ensure_ascii=False).encode()


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {clean_text(key): _clean(item) for key, item in value.items()}
    return value


def is_clean(text: str) -> bool:
    """Whether a database can hold ``text``: valid Unicode without NUL."""
    return "\0" not in text and clean_text(text) == text
