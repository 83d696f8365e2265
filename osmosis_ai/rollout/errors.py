"""From an exception of user code to a category and a message."""

from pydantic import ValidationError

from osmosis_ai.rollout.types.status import RolloutErrorCategory

_VALIDATION_ERRORS = (ValueError, TypeError, AssertionError)


class DeadlineExceededError(TimeoutError):
    """A phase ran past its deadline; the text says which and by whose time."""


class WorkflowExitError(Exception):
    """User code ended the interpreter or cancelled itself instead of returning."""


def categorize_exception(exc: BaseException) -> RolloutErrorCategory:
    """Map an exception to its category.

    A group has the category that all its members share, else ``agent_error``.
    """
    if isinstance(exc, BaseExceptionGroup):
        members = {categorize_exception(member) for member in exc.exceptions}
        return members.pop() if len(members) == 1 else RolloutErrorCategory.AGENT_ERROR
    if isinstance(exc, TimeoutError):
        return RolloutErrorCategory.TIMEOUT
    if isinstance(exc, _VALIDATION_ERRORS):
        return RolloutErrorCategory.VALIDATION_ERROR
    return RolloutErrorCategory.AGENT_ERROR


def describe_exception(exc: BaseException) -> str:
    """Return a text that is never empty.

    Pydantic's own text ends in a documentation link whose version differs from
    one interpreter to the next, so it is left out.
    """
    if isinstance(exc, ValidationError):
        lines = [
            f"{'.'.join(str(part) for part in error['loc']) or exc.title}: {error['msg']}"
            for error in exc.errors(include_url=False, include_context=False)
        ]
        return f"{exc.error_count()} validation error(s) for {exc.title}: " + "; ".join(lines)
    try:
        return str(exc) or type(exc).__name__
    except Exception as broken:
        return f"{type(exc).__name__} (its text cannot be had: {type(broken).__name__})"
