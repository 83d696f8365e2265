"""The two callback bodies, encoded once and kept: every retry sends these very bytes."""

import json

from osmosis_ai.common.texts import clean_text
from osmosis_ai.rollout.server.wire import encode_result
from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.rollout.types.status import RolloutErrorCategory, RolloutStatus

_KNOWN_TO_TRAINERS = frozenset(
    {
        RolloutErrorCategory.TIMEOUT,
        RolloutErrorCategory.VALIDATION_ERROR,
        RolloutErrorCategory.HTTP_ERROR,
        RolloutErrorCategory.AGENT_ERROR,
    }
)
"""The categories of the protocol's own time; a trainer of that time rejects any other."""


def completion_body(rollout_id: str, result: ExecutionResult) -> bytes:
    """Encode a ``RolloutCompleteRequest``: how the workflow ended, without its sample."""
    plain = _in_old_words(result)
    message = plain.err_message
    fields = {
        "rollout_id": rollout_id,
        "status": plain.status.value,
        "extra_fields": None,
        "err_message": None if message is None else clean_text(message),
        "err_category": plain.err_category and plain.err_category.value,
    }
    return json.dumps(fields, ensure_ascii=False).encode()


def grader_body(rollout_id: str, result: ExecutionResult) -> bytes:
    """Encode a ``GraderCompleteRequest``: the sample, and its reward if it may be used.

    Every status but success is a failure in this body.
    """
    plain = _in_old_words(result)
    if plain.status is not RolloutStatus.SUCCESS:
        plain = plain.model_copy(update={"status": RolloutStatus.FAILURE})
    return encode_result(rollout_id, plain)


def _in_old_words(result: ExecutionResult) -> ExecutionResult:
    """Move a category that old trainers do not know into the message."""
    category = result.err_category
    if category is None or category in _KNOWN_TO_TRAINERS:
        return result
    message = f"[{category.value}] {result.err_message or ''}".rstrip()
    return result.model_copy(update={"err_category": None, "err_message": message})
