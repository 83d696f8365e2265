"""Encodes results for the wire. Decisions only, no I/O."""

import json
from collections.abc import Mapping
from typing import Any

from osmosis_ai.common.texts import clean_text
from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.rollout.types.json_safe import to_json_value
from osmosis_ai.rollout.types.sample import RolloutSample
from osmosis_ai.rollout.types.status import RolloutStatus


def encode_progress(rollout_id: str, status: RolloutStatus) -> bytes:
    """Encode the answer for a rollout in flight: nothing but id and status."""
    return _encode(_response(rollout_id, ExecutionResult(status=status), None))


def encode_result(rollout_id: str, result: ExecutionResult) -> bytes:
    """Encode a ``RolloutResultResponse`` as JSON; whatever the sample holds, it encodes.

    What JSON cannot hold of a message goes as text, see ``to_json_value``.
    """
    sample = result.sample
    fields = None if sample is None else _sample(sample, wire_reward(result))
    return _encode(_response(rollout_id, result, fields))


def wire_reward(result: ExecutionResult) -> float | None:
    """The reward that a trainer may use: only of a success that is not to be dropped."""
    sample = result.sample
    if sample is None or sample.remove_sample or result.status is not RolloutStatus.SUCCESS:
        return None
    return sample.reward


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
    safe = sample.json_safe_copy()
    fields = {name: getattr(safe, name) for name in RolloutSample.model_fields}
    del fields["trajectory_messages"]
    return {**fields, "reward": reward}


def _encode(value: Mapping[str, Any]) -> bytes:
    return json.dumps(to_json_value(value), ensure_ascii=False, allow_nan=False).encode()


def is_clean(text: str) -> bool:
    """Whether a database can hold ``text``: valid Unicode without NUL."""
    return "\0" not in text and clean_text(text) == text
