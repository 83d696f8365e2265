"""Building the bundle of a rollout project, once per content."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
import sysconfig
import zipfile
from dataclasses import asdict
from typing import TYPE_CHECKING

from harbor_backend.program.bundle.layout import Layout, adapted_pyproject, find_layout
from harbor_backend.program.bundle.project import Project, project_dir_for
from harbor_backend.program.bundle.staging import copy_files, hash_files, project_files
from harbor_backend.program.bundle.store import Store, remove_tree, user_cache
from harbor_backend.program.bundle.uv import run_uv

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harbor_backend.program.bundle.entry_points import EntryPoints

RECIPE = 1


def build_bundle(
    anchor: type | Path | str,
    *,
    entry_points: EntryPoints,
    bundles_dir: Path | None = None,
) -> Path:
    """Pack a rollout project into a wheel and return its path; unchanged content builds nothing.

    `anchor` is a class of the project or the project's directory. The wheel keeps the project's
    name, version and dependencies and holds a generated module that names what to run.
    Directories with a `task.toml` are left out. `bundles_dir` replaces the user's cache.

    Raises ValueError for a project that cannot be bundled, UvError with the build's last lines
    when the build fails, and RuntimeError for a damaged cache entry.
    """
    project = Project(project_dir_for(anchor))
    bundles = (bundles_dir or user_cache("bundles")).resolve()
    if bundles == project.directory:
        raise ValueError(
            f"bundles_dir {bundles} is the project itself: choose a directory of its own"
        )
    project.check_sources()
    files = project_files(project.directory, without=bundles)
    layout = find_layout(project, files, entry_points)
    store = Store(bundles / project.distribution)
    key = _key(project, files, entry_points)
    with store.acquire(key, lambda target: _build(project, files, layout, entry_points, target)):
        wheels = list((store.root / key).glob("*.whl"))
        if len(wheels) != 1 or not zipfile.is_zipfile(wheels[0]):
            raise RuntimeError(
                f"the bundle cache entry {store.root / key} is damaged (it should hold one "
                "wheel): delete that directory and try again"
            )
        return wheels[0]


def _key(project: Project, files: Sequence[Path], entry_points: EntryPoints) -> str:
    head = {
        "recipe": RECIPE,
        "pyproject": project.text,
        "entry_points": asdict(entry_points),
        "python": sys.implementation.cache_tag,
        "platform": [sysconfig.get_platform(), platform.machine()],
    }
    digest = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
    hash_files(project.directory, files, digest)
    return digest.hexdigest()[:32]


def _build(
    project: Project,
    files: Sequence[Path],
    layout: Layout,
    entry_points: EntryPoints,
    target: Path,
) -> None:
    source = target / "source"
    copy_files(project.directory, files, source)
    pyproject = adapted_pyproject(project, files, layout)
    (source / "pyproject.toml").write_text(pyproject, encoding="utf-8")
    (source / layout.runner).write_text(runner_source(entry_points), encoding="utf-8")
    # hatchling looks for a .gitignore upwards, and must not find one of the user's home.
    (source / ".gitignore").touch()
    out = target / "out"
    run_uv(
        f"building the bundle of {project.directory}",
        ["build", "--wheel", "--python", sys.executable, "--out-dir", str(out), str(source)],
    )
    (wheel,) = out.glob("*.whl")
    _check_contents(project, layout, wheel)
    wheel.rename(target / wheel.name)
    for directory in (source, out):
        remove_tree(directory)


def _check_contents(project: Project, layout: Layout, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        present = set(archive.namelist())
    for file in (*layout.modules, layout.runner):
        inside = file.relative_to(layout.root).as_posix()
        if inside not in present:
            raise ValueError(
                f"the wheel that {project.backend} builds from {project.directory} does not hold "
                f"{inside}: make the project's build configuration include it"
            )


def runner_source(entry_points: EntryPoints) -> str:
    """The source of the generated module: the import paths, and functions that import them."""
    return f'''"""Names what this bundle runs. Generated when the bundle was built."""

AGENT = {entry_points.agent!r}
WORKFLOW_CONFIG = {entry_points.workflow_config!r}
GRADER = {entry_points.grader!r}
GRADER_CONFIG = {entry_points.grader_config!r}


def load_agent():
    """The workflow class and its config, each None when the bundle has none."""
{_loader(entry_points.agent, entry_points.workflow_config)}

def load_grader():
    """The grader class and its config, each None when the bundle has none."""
{_loader(entry_points.grader, entry_points.grader_config)}'''


def _loader(*paths: str | None) -> str:
    lines, values = [], []
    for alias, path in zip(("subject", "config"), paths, strict=True):
        if path is None:
            values.append("None")
            continue
        module, _, attribute = path.partition(":")
        first, *rest = attribute.split(".")
        lines.append(f"    from {module} import {first} as {alias}\n")
        values.append(".".join([alias, *rest]))
    return "".join([*lines, "\n" if lines else "", f"    return {', '.join(values)}\n"])
