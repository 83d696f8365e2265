"""What a host believes of a workflow's result: neither its reward nor an excuse that nobody saw."""

from typing import TYPE_CHECKING

from osmosis_ai.common.texts import bounded_notes
from osmosis_ai.rollout.execution import WARNINGS
from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.rollout.types.status import RolloutErrorCategory

if TYPE_CHECKING:
    from osmosis_ai.gateway import Endpoint

REWARD_CLEARED = (
    "The workflow set a reward of its own, and it was cleared: rewards come from a grader or from "
    "a task's tests, unless the backend is made with workflow_rewards=True"
)
NO_SERVICE_FAILED = (
    "The workflow says that a service failed it (http_error), but the gateway saw no model call "
    "fail: it counts as the agent's error"
)


def believed(
    result: ExecutionResult, *, service_failed: bool, workflow_rewards: bool
) -> ExecutionResult:
    """The result of a workflow as the host takes it, whatever the code that made it says.

    Its reward is cleared, unless the backend takes it (``workflow_rewards``).
    ``http_error`` excuses a rollout, and stands only where the host saw it
    (``service_failed``); what else excuses is the host's alone to say.
    """
    sample, notes = result.sample, []
    if sample is not None and sample.reward is not None and not workflow_rewards:
        notes.append(REWARD_CLEARED)
        sample = sample.model_copy(update={"reward": None})
    category = result.err_category
    is_services = category is RolloutErrorCategory.HTTP_ERROR
    if category is not None and category.may_run_again and not (is_services and service_failed):
        if is_services:
            notes.append(NO_SERVICE_FAILED)
        category = RolloutErrorCategory.AGENT_ERROR
    if sample is result.sample and category is result.err_category:
        return result
    told = bounded_notes([*result.extra_fields.get(WARNINGS, []), *notes])
    extra = {**result.extra_fields, **({WARNINGS: told} if told else {})}
    return result.model_copy(
        update={"sample": sample, "err_category": category, "extra_fields": extra}
    )


def upstream_failed(endpoint: "Endpoint | None") -> bool:
    """Whether the gateway saw the model's server fail."""
    return endpoint is not None and endpoint.summary().upstream_errors > 0
