"""Stand-ins for what a rollout's module imports on the host but never uses in a sandbox.

``main.py`` defines the workflow and wires it into a backend and a server. The
sandbox imports it for the workflow alone, without Harbor or a server at hand.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from abc import ABCMeta
from collections.abc import Sequence
from types import FunctionType, ModuleType
from typing import Any, Self

HOST_ONLY = (
    "harbor",
    "harbor_backend",
    "fastapi",
    "starlette",
    "uvicorn",
    "osmosis_ai.rollout.server",
    "osmosis_ai.gateway",
)


class _StandInType(ABCMeta):
    """Gives a stand-in class every attribute, as a further stand-in that stays the same."""

    def __getattr__(cls, name: str) -> Any:
        # Libraries probe classes for underscored names, and believe what they find.
        if name.startswith("_"):
            raise AttributeError(f"host-only {cls.__name__} has no attribute {name!r}")
        found = _stand_in(name)
        setattr(cls, name, found)
        return found

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls.__module__ == __name__ and _decorates(args, kwargs):
            return args[0]
        return super().__call__(*args, **kwargs)


class HostOnly(metaclass=_StandInType):
    """Stands for anything of a host-only module.

    It is a class, so it can be subclassed, subscripted and named in a type; it
    takes every call, and as a decorator returns what it decorates.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__()

    def __class_getitem__(cls, item: Any) -> type[Self]:
        return cls

    def __getattr__(self, name: str) -> Any:
        return getattr(type(self), name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] if _decorates(args, kwargs) else self


def _decorates(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return len(args) == 1 and not kwargs and isinstance(args[0], FunctionType | type)


def _stand_in(name: str) -> _StandInType:
    return _StandInType(name, (HostOnly,), {"__module__": __name__})


class _HostOnlyModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = _stand_in(name)
        setattr(self, name, found)
        return found


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Last on the path: answers for host-only modules that the runtime does not have."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not any(name == known or name.startswith(f"{known}.") for known in HOST_ONLY):
            return None
        return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _HostOnlyModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run."""


def install() -> None:
    """Let imports of host-only modules succeed in this process."""
    sys.meta_path.append(_Finder())
