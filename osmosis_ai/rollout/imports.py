"""Naming objects by ``module:attr`` and finding them again."""

import importlib
import inspect
import sys


def resolve_object(path: str) -> object:
    """Import what ``module:attr`` names; ``attr`` may be dotted.

    Raises:
        ValueError: there is no colon, or a side of it is empty.
        ImportError: the module does not import, or does not export the name.
    """
    module_name, colon, attribute = path.rpartition(":")
    if not colon or not module_name or not attribute:
        raise ValueError(f"{path!r} names nothing to import: expected 'module:attr' format")
    try:
        found: object = importlib.import_module(module_name)
    except ModuleNotFoundError as exc:
        raise ImportError(
            f"{path!r} cannot be imported: {exc}; check the spelling and that its project is "
            "installed or on sys.path"
        ) from exc
    except (Exception, SystemExit) as exc:
        raise ImportError(
            f"{path!r} cannot be imported: {module_name} raised {type(exc).__name__}: {exc}"
        ) from exc
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ImportError(f"{module_name} does not export '{attribute}'")
        found = getattr(found, part)
    return found


def to_import_path(value: object) -> str:
    """Return ``module:attr`` for a class, or for an instance that a module holds by name.

    Raises:
        ValueError: no importable module holds it under a public name.
    """
    if isinstance(value, type):
        if "<locals>" in value.__qualname__:
            raise ValueError(
                f"Cannot resolve import path of {value.__qualname__}: it is defined inside a "
                "function; move it to module level"
            )
        return f"{value.__module__}:{value.__qualname__}"
    for module_name in _candidate_modules(value):
        module = sys.modules.get(module_name)
        for name, held in vars(module).items() if module else ():
            if held is value and not name.startswith("_"):
                return f"{module_name}:{name}"
    raise ValueError(
        f"Cannot resolve import path of {type(value).__name__} instance {value!r}: keep it in a "
        "module-level name of the module that defines its type, or pass 'module:name'"
    )


def _candidate_modules(value: object) -> list[str]:
    own = type(value).__module__
    frame = inspect.currentframe()
    callers: list[str] = []
    while frame is not None:
        callers.append(str(frame.f_globals.get("__name__", "")))
        frame = frame.f_back
    return list(dict.fromkeys([own, *callers]))
