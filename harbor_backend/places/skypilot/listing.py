"""Reading ``sky.sandbox.ls``, whose result nobody documents, and ending what it lists."""

from collections.abc import AsyncIterable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harbor_backend.places.skypilot.errors import SkypilotError
from harbor_backend.places.skypilot.sdk import call

_NAMES = ("name", "sandbox_name")
_WRAPPERS = ("sandboxes", "items", "data", "results", "metadata")
_FINDERS = ("get", "connect", "from_name", "attach")
_DEEP = 6


@dataclass(frozen=True)
class Listed:
    """One sandbox of a listing: its name, and whatever the SDK gave for it."""

    name: str
    entry: Any


async def list_sandboxes(sdk: Any) -> list[Listed]:
    """Return what the SDK lists, as far as names can be made out.

    Raises:
        SkypilotError: it does not list, or lists nothing that is understood.
    """
    try:
        answer = await call(sdk.ls)
        if isinstance(answer, AsyncIterable):
            answer = [entry async for entry in answer]
    except Exception as exc:  # the SDK's exceptions are not documented either
        raise SkypilotError(f"sky.sandbox.ls failed: {type(exc).__name__}: {exc}") from exc
    return listed(answer)


def listed(answer: Any) -> list[Listed]:
    """Make out the sandboxes in an answer: objects, mappings or names, wrapped or not.

    Raises:
        SkypilotError: it holds something in which no name is.
    """
    return list(_entries(answer, _DEEP))


async def terminate_listed(sdk: Any, sandbox: Listed) -> None:
    """End a sandbox of which only the listing is known.

    Raises:
        SkypilotError: no way to end it was found, or it failed.
    """
    try:
        terminate = getattr(sandbox.entry, "terminate", None)
        if terminate is not None:
            await _and_wait(terminate)
            return
        for finder in _FINDERS:
            if (find := getattr(sdk, finder, None)) is not None:
                await _and_wait((await call(find, sandbox.name)).terminate)
                return
        if (by_name := getattr(sdk, "terminate", None)) is not None:
            await call(by_name, sandbox.name)
            return
    except Exception as exc:
        raise SkypilotError(
            f"Sandbox {sandbox.name} was not terminated: {type(exc).__name__}: {exc}"
        ) from exc
    raise SkypilotError(
        f"Sandbox {sandbox.name} cannot be terminated through this version of the SDK: "
        f"sky sandbox terminate {sandbox.name}"
    )


async def _and_wait(terminate: Any) -> None:
    """Terminate and see it gone, where that can be asked for."""
    try:
        await call(terminate, wait=True)
    except TypeError:
        await call(terminate)


def _entries(answer: Any, deep: int) -> Iterator[Listed]:
    if answer is None:
        return
    if isinstance(answer, str):
        yield Listed(answer, answer)
    elif (name := _name(answer)) is not None:
        yield Listed(name, answer)
    elif deep > 0 and (wrapped := _wrapped(answer)) is not answer:
        yield from _entries(wrapped, deep - 1)
    elif deep == _DEEP and isinstance(answer, Mapping) and _is_by_name(answer):
        yield from (Listed(str(name), entry) for name, entry in answer.items())
    elif deep > 0 and isinstance(answer, Iterable) and not isinstance(answer, Mapping):
        for entry in answer:
            yield from _entries(entry, deep - 1)
    else:
        raise SkypilotError(f"sky.sandbox.ls gave a {type(answer).__name__} in which no name is")


def _wrapped(answer: Any) -> Any:
    """What lies in an answer under one of the usual keys; else the answer itself."""
    for key in _WRAPPERS:
        if isinstance(answer, Mapping):
            if key in answer:
                return answer[key]
        elif (inner := getattr(answer, key, None)) is not None:
            return inner
    return answer


def _is_by_name(answer: Mapping[Any, Any]) -> bool:
    """Whether a mapping leads from names to what is known of each."""
    return all(
        isinstance(entry, Mapping) or hasattr(entry, "__dict__") for entry in answer.values()
    )


def _name(entry: Any) -> str | None:
    for key in _NAMES:
        value = entry.get(key) if isinstance(entry, Mapping) else getattr(entry, key, None)
        if isinstance(value, str):
            return value
    inner = entry.get("metadata") if isinstance(entry, Mapping) else None
    return _name(inner) if isinstance(inner, Mapping) else None
