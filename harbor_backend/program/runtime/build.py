"""The runtime of a bundle: the directory that is mounted at /opt/osmosis in its sandboxes."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from harbor_backend.program.bundle.inspection import BundleInfo, inspect_bundle
from harbor_backend.program.bundle.store import Entry, Store, remove_tree, user_cache
from harbor_backend.program.runtime.base import base_tree
from harbor_backend.program.runtime.install import (
    adopt_libraries,
    install_requirements,
    install_wheel,
    move_scripts,
)
from harbor_backend.program.runtime.interpreter import Interpreter, file_hash
from harbor_backend.program.runtime.paths import DESCRIPTION, MOUNT, under
from harbor_backend.program.runtime.requirements import (
    host_constraints,
    installed_versions,
    sandbox_requirements,
)
from harbor_backend.program.runtime.sdk import Sdk
from harbor_backend.program.runtime.tree import compile_tree, link_tree, make_readable, merge_tree

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from types import TracebackType

RECIPE = 1


@dataclass(frozen=True)
class Runtime:
    """A published runtime, to be mounted read-only at `/opt/osmosis`.

    While this handle lives, no `prune` in any process removes the directory; `close()` it, or
    use it as a context manager, when no sandbox needs it any more.
    """

    path: Path
    key: str
    _entry: Entry = field(repr=False)

    def close(self) -> None:
        """Let the directory be pruned."""
        self._entry.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@dataclass(frozen=True)
class _Plan:
    """All that decides what a runtime holds."""

    sdk: Sdk
    interpreter: Interpreter
    base: Entry
    bundle: BundleInfo | None
    requirements: list[str]
    constraints: list[str]

    def packages_key(self) -> str:
        return _hash([RECIPE, self.base.key, self.requirements, self.constraints])

    def key(self) -> str:
        wheel = file_hash(self.bundle.wheel) if self.bundle else None
        return _hash([RECIPE, self.packages_key(), self.sdk.digest(), wheel])


def _hash(parts: list[Any]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def build_runtime(
    bundle: Path | None,
    *,
    extra_requirements: Sequence[str] = (),
    cache_dir: Path | None = None,
) -> Runtime:
    """The runtime of a bundle wheel, or of the SDK alone; unchanged content builds nothing.

    It holds the running interpreter with its libraries, the SDK core, the bundle's requirements
    in the versions the host has, `extra_requirements`, and the bundle. `cache_dir` replaces the
    user's cache. Blocks for as long as building takes: call it in a thread.

    Raises ValueError for a wheel that is no bundle, UvError when its requirements cannot be
    installed, and RuntimeError on a host that is not Linux or lacks a tool.
    """
    if sys.platform != "linux":
        raise RuntimeError(
            f"a sandbox runs this machine's own interpreter, and {sys.platform} has none that "
            "starts in a Linux container: run the engine on Linux, in a virtual machine if need be"
        )
    info = inspect_bundle(bundle) if bundle is not None else None
    sdk = Sdk.running()
    wanted = [*(info.requirements if info else ()), *extra_requirements]
    requirements = sandbox_requirements(wanted, sdk.requires, sdk.version)
    constraints = host_constraints(requirements, installed_versions())
    interpreter = Interpreter.running()
    runtimes = _store("runtimes", cache_dir)
    with base_tree(_store("interpreters", cache_dir), interpreter) as base:
        plan = _Plan(sdk, interpreter, base, info, requirements, constraints)
        packages = _store("packages", cache_dir)
        is_new = not (runtimes.root / plan.key()).is_dir()
        entry = runtimes.acquire(plan.key(), lambda tree: _build(plan, packages, tree))
    if is_new:
        prune(keep={entry.key}, cache_dir=cache_dir)
    return Runtime(entry.path, entry.key, entry)


def _store(kind: str, cache_dir: Path | None) -> Store:
    return Store(user_cache(kind, cache_dir))


def _build(plan: _Plan, packages: Store, tree: Path) -> None:
    """Add the bundle and the SDK to the packages, which most bundles of a project share."""
    with packages.acquire(plan.packages_key(), lambda target: _build_packages(plan, target)) as e:
        link_tree(e.path, tree)
    overlay = tree / "overlay"
    overlay.mkdir()
    if plan.bundle is not None:
        install_wheel(plan.bundle.wheel, overlay)
    plan.sdk.copy_to(overlay)
    _add_site_packages(plan, overlay, tree)
    under(tree, DESCRIPTION).write_text(json.dumps(_describe(plan), indent=2) + "\n")
    make_readable(tree)


def _build_packages(plan: _Plan, tree: Path) -> None:
    link_tree(plan.base.path, tree)
    overlay, scratch = tree / "overlay", tree / "scratch"
    overlay.mkdir()
    scratch.mkdir()
    install_requirements(plan.requirements, plan.constraints, overlay, scratch)
    remove_tree(scratch)
    _add_site_packages(plan, overlay, tree)
    make_readable(tree)


def _add_site_packages(plan: _Plan, overlay: Path, tree: Path) -> None:
    move_scripts(overlay, tree)
    adopt_libraries(overlay, tree)
    place = plan.interpreter.site_packages
    compile_tree(overlay, MOUNT / place, plan.interpreter.executable)
    merge_tree(overlay, tree / place)


def _describe(plan: _Plan) -> dict[str, Any]:
    bundle = asdict(plan.bundle) if plan.bundle else None
    if bundle is not None:
        bundle["wheel"] = Path(bundle["wheel"]).name
    return {
        "format": 1,
        "python": plan.interpreter.version,
        "machine": platform.machine(),
        "sdk": plan.sdk.version,
        "requirements": plan.requirements,
        "bundle": bundle,
    }


def prune(
    *,
    max_age_days: float = 30,
    max_bytes: int = 20 * 2**30,
    keep: Collection[str] = (),
    cache_dir: Path | None = None,
) -> list[str]:
    """Remove runtimes unused for `max_age_days`, then the oldest until `max_bytes` remain.

    Neither those in `keep` nor those a living process holds are removed; each removal is logged.
    Returns the removed runtimes' keys. Bundles, and the layers that runtimes are made from, are
    pruned likewise.
    """
    bundles = user_cache("bundles", cache_dir)
    projects = sorted(bundles.iterdir()) if bundles.is_dir() else []
    layers = [_store(layer, cache_dir) for layer in ("interpreters", "packages")]
    archives = _store("archives", cache_dir)
    for store in (*layers, archives, *map(Store, projects)):
        store.prune(max_age_days=max_age_days, max_bytes=max_bytes)
    return _store("runtimes", cache_dir).prune(
        max_age_days=max_age_days, max_bytes=max_bytes, keep=keep
    )
