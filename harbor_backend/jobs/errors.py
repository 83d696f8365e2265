"""Names under which a job counts its failures."""

from osmosis_ai.rollout.types.status import RolloutErrorCategory

_TIMEOUTS = {"verifier": "VerifierTimeoutError", "agent_setup": "AgentSetupTimeoutError"}


def error_kind(category: str | None, phase: str | None) -> str:
    """The exception type for a failure of this category in this phase.

    A deadline has Harbor's own name, because Harbor's rules (is the reward valid,
    is it run again) go by names; any other category is its own name.
    """
    if category is None:
        return "UnknownError"
    if category == RolloutErrorCategory.TIMEOUT:
        return _TIMEOUTS.get(phase or "", "AgentTimeoutError")
    words = "".join(part.capitalize() for part in category.split("_"))
    return words if words.endswith("Error") else f"{words}Error"
