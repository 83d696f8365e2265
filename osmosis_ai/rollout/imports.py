"""Finding what ``module:attr`` names."""

import importlib


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
