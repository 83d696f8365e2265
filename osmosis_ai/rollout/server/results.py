"""Results that the server itself gives, and the callbacks that follow from any result."""

import time

from osmosis_ai.rollout.server.callbacks import (
    Callback,
    CallbackKind,
    ControllerAuth,
    completion_body,
    grader_body,
)
from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.rollout.types.protocol import RolloutInitRequest
from osmosis_ai.rollout.types.status import RolloutErrorCategory, RolloutStatus


def failed(message: str, category: RolloutErrorCategory) -> ExecutionResult:
    """A failure that is the server's to tell."""
    return ExecutionResult(status=RolloutStatus.FAILURE, err_message=message, err_category=category)


LEASE_EXPIRED = failed("polling lease expired", RolloutErrorCategory.LEASE_EXPIRED)
CRASHED = failed("rollout task crashed", RolloutErrorCategory.INTERNAL_ERROR)
CANCELLED = ExecutionResult(status=RolloutStatus.CANCELLED, err_message="The rollout was cancelled")


def interrupted(why: str) -> ExecutionResult:
    """The end of a rollout whose server was stopped or killed."""
    text = f"The engine restarted while the rollout ran: {why}"
    return failed(text, RolloutErrorCategory.INTERRUPTED)


def completion_callback(request: RolloutInitRequest, workflow: ExecutionResult) -> Callback:
    """What tells the trainer that the workflow's phase ended."""
    url = request.completion_callback_url
    if url is None:
        raise ValueError(f"rollout {request.rollout_id!r} asked for no callback")
    body = completion_body(request.rollout_id, workflow)
    return _callback(request, CallbackKind.COMPLETION, url, body)


def last_callbacks(
    request: RolloutInitRequest,
    result: ExecutionResult,
    workflow: ExecutionResult | None,
    posted: set[str],
) -> list[Callback]:
    """The callbacks that a result still owes, besides those in ``posted``.

    ``workflow`` is ``None`` when the rollout did not come to an end of its own:
    then the trainer hears of both phases, whichever it waits for. Otherwise the
    grader's follows a workflow that succeeded.
    """
    if request.completion_callback_url is None:
        return []
    owed: list[Callback] = []
    if CallbackKind.COMPLETION not in posted:
        owed.append(completion_callback(request, workflow or result))
    graded = workflow is None or workflow.status is RolloutStatus.SUCCESS
    if request.grader_callback_url and graded and CallbackKind.GRADER not in posted:
        body = grader_body(request.rollout_id, result)
        owed.append(_callback(request, CallbackKind.GRADER, request.grader_callback_url, body))
    return owed


def _callback(request: RolloutInitRequest, kind: CallbackKind, url: str, body: bytes) -> Callback:
    auth = ControllerAuth(request.controller_api_key)
    return Callback(request.rollout_id, kind, url, body, auth, time.time())
