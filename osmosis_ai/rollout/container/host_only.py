"""Stand-ins for what a rollout's module imports on the host but never uses in a sandbox.

``main.py`` defines the workflow and wires it into a backend and a server. The
sandbox imports it for the workflow alone, without Harbor or a server at hand.
"""

import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

HOST_ONLY = (
    "harbor",
    "harbor_backend",
    "fastapi",
    "uvicorn",
    "osmosis_ai.rollout.server",
    "osmosis_ai.gateway",
)


class HostOnly:
    """Stands for anything of a host-only module: takes every call, holds no behaviour."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __getattr__(self, name: str) -> "HostOnly":
        if name.startswith("__"):
            raise AttributeError(name)
        return HostOnly()

    def __call__(self, *args: Any, **kwargs: Any) -> "HostOnly":
        return self


class _HostOnlyModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return HostOnly


class _Finder:
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
    sys.meta_path.append(_Finder())  # type: ignore[arg-type]
