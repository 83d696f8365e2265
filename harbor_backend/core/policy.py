"""Which failures of an agent are graded all the same, by Harbor's own error policy.

The policy is a table of exception names (``harbor.models.trial.error_policy``), which Harbor's
newer versions obey, and older ones in part: there, a trial of one step is graded after
``AgentTimeoutError`` and ``NonZeroAgentExitCodeError`` alone. So an exception is given to them
as what the policy makes of it, under its own name.
"""

from harbor.agents.installed.base import NonZeroAgentExitCodeError
from harbor.models.trial.error_policy import ERROR_POLICIES, policy_for

from osmosis_ai.rollout.errors import describe_exception
from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.rollout.types.status import RolloutErrorCategory, RolloutStatus


def is_graded(exception_type: str) -> bool:
    """Whether Harbor grades the work of an agent that ended with such an exception."""
    policy = policy_for(exception_type)
    return bool(getattr(policy, "grade" if hasattr(policy, "grade") else "should_grade"))


def as_harbor_grades(exc: Exception) -> Exception:
    """An agent's exception as one that Harbor grades, or does not, as its policy says.

    One that the policy does not name is left to Harbor: it may be the sandbox's.
    """
    name = type(exc).__name__
    graded = is_graded(name)
    known = name in ERROR_POLICIES and not isinstance(exc, TimeoutError)
    if not known or graded is isinstance(exc, NonZeroAgentExitCodeError):
        return exc
    return _named(name, describe_exception(exc), graded=graded)


def graded_failure(result: ExecutionResult, message: str) -> Exception:
    """What ends a workflow that failed by itself, so that Harbor grades its work."""
    late = result.err_category is RolloutErrorCategory.TIMEOUT
    name = "AgentTimeoutError" if late else NonZeroAgentExitCodeError.__name__
    return _named(name, message, graded=True)


def is_the_agents(result: ExecutionResult) -> bool:
    """Whether an agent failed by itself: its work is there, and its reward counts."""
    failed, category = result.status is RolloutStatus.FAILURE, result.err_category
    return failed and category is not None and not category.may_run_again


def _named(name: str, message: str, *, graded: bool) -> Exception:
    # Harbor decides by the class in one place and by its name in another.
    kind = NonZeroAgentExitCodeError if graded else RuntimeError
    made: type[Exception] = type(name, (kind,), {"__module__": __name__})
    return made(message)
