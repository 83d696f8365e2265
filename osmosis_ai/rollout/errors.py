"""From an exception of user code to a category and a message."""

from pydantic import ValidationError

from osmosis_ai.common.model_calls import SERVICE_STATUSES
from osmosis_ai.common.texts import MAX_NOTE_CHARACTERS, shortened
from osmosis_ai.rollout.types.status import RolloutErrorCategory

_MAX_LISTED = 10
_MAX_DEPTH = 3
_VALIDATION_ERRORS = (ValueError, TypeError, AssertionError)

# Of httpx, of the OpenAI and Anthropic clients, and of Strands, which are not imported for it.
_SERVICE_ERRORS = frozenset({"TransportError", "APIConnectionError", "ModelThrottledException"})


class DeadlineExceededError(TimeoutError):
    """A phase ran past its deadline; the text says which and by whose time."""


class WorkflowExitError(Exception):
    """User code ended the interpreter or cancelled itself instead of returning."""


def categorize_exception(exc: BaseException) -> RolloutErrorCategory:
    """Map an exception to its category.

    A group has the category that all its members share, else ``agent_error``. What the
    client of a service raises because that does not serve is ``http_error``.
    """
    if isinstance(exc, BaseExceptionGroup):
        members = {categorize_exception(member) for member in exc.exceptions}
        return members.pop() if len(members) == 1 else RolloutErrorCategory.AGENT_ERROR
    if _is_of_a_service(exc):
        return RolloutErrorCategory.HTTP_ERROR
    if isinstance(exc, TimeoutError):
        return RolloutErrorCategory.TIMEOUT
    if isinstance(exc, _VALIDATION_ERRORS):
        return RolloutErrorCategory.VALIDATION_ERROR
    return RolloutErrorCategory.AGENT_ERROR


def _is_of_a_service(exc: BaseException) -> bool:
    """Whether a service refused or was not reached, by what HTTP clients have in common."""
    original = _attribute(exc, "original_exception")  # Strands wraps what its model raised
    return any(
        _status(each) in SERVICE_STATUSES
        or any(kind.__name__ in _SERVICE_ERRORS for kind in type(each).__mro__)
        for each in (exc, original)
    )


def _status(exc: object) -> int | None:
    response = _attribute(exc, "response")
    found = [_attribute(each, "status_code") for each in (exc, response)]
    return next((status for status in found if type(status) is int), None)


def _attribute(value: object, name: str) -> object:
    try:
        return getattr(value, name, None)
    except Exception:  # of a property of somebody else's
        return None


def describe_exception(exc: BaseException) -> str:
    """Return a text that is never empty, nor longer than an error's may be.

    Pydantic's own text ends in a documentation link whose version differs from
    one interpreter to the next, so it is left out. A group's text is followed by
    its members', down to the third level.
    """
    return shortened(_described(exc, 0))


def _described(exc: BaseException, depth: int) -> str:
    if isinstance(exc, ValidationError):
        return _fields(exc)
    try:
        text = str(exc) or type(exc).__name__
    except Exception as broken:
        return f"{type(exc).__name__} (its text cannot be had: {type(broken).__name__})"
    if isinstance(exc, BaseExceptionGroup) and depth < _MAX_DEPTH:
        members = [_member(member, depth + 1) for member in exc.exceptions[:_MAX_LISTED]]
        return f"{text}: {_listed(members, len(exc.exceptions))}"
    return text


def _member(exc: BaseException, depth: int) -> str:
    kind, text = type(exc).__name__, _described(exc, depth)
    return text if text.startswith(kind) else f"{kind}: {text}"


def _fields(exc: ValidationError) -> str:
    lines = [
        f"{'.'.join(str(part) for part in error['loc']) or exc.title}: {error['msg']}"
        for error in exc.errors(include_url=False, include_context=False)[:_MAX_LISTED]
    ]
    count = exc.error_count()
    return f"{count} validation error(s) for {exc.title}: {_listed(lines, count)}"


def _listed(texts: list[str], count: int) -> str:
    """Texts, each shortened, and how many of ``count`` they are not."""
    more = f"; and {count - len(texts)} more" if count > len(texts) else ""
    return "; ".join(shortened(text, MAX_NOTE_CHARACTERS) for text in texts) + more
