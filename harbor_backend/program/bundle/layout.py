"""Where a project's modules lie, and how its wheel comes to hold them and the runner."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import tomlkit

from harbor_backend.program.bundle.inspection import RUNNER_MODULE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harbor_backend.program.bundle.entry_points import EntryPoints
    from harbor_backend.program.bundle.project import Project

NOT_SHIPPED = frozenset(
    {
        *("CHANGELOG.md", "Dockerfile", "LICENSE", "LICENSE.md", "LICENSE.txt", "Makefile"),
        *("README", "README.md", "README.rst", "benchmarks", "conftest.py", "docs"),
        *("noxfile.py", "pyproject.toml", "setup.cfg", "setup.py", "test", "tests"),
    }
)
SELECTORS = ("include", "only-include", "packages", "force-include")


@dataclass(frozen=True)
class Layout:
    """`root` is what modules are imported from, relative to the project ("" or "src").

    `modules` are the files of the entry points' modules and `runner` that of the generated one,
    relative to the project.
    """

    root: Path
    modules: tuple[Path, ...]
    runner: Path

    @property
    def is_flat(self) -> bool:
        """Whether the runner is a top-level module, not part of a package."""
        return self.runner.parent == self.root


def find_layout(project: Project, files: Sequence[Path], entry_points: EntryPoints) -> Layout:
    """Find the entry points' modules among the project's files.

    A module of another distribution may be named beside one of the project's own. Raises
    ValueError naming the entry point when its module is not there.
    """
    present = set(files)
    has_src = Path("src/__init__.py") not in present
    roots = [Path("src"), Path()] if has_src else [Path()]
    found: list[tuple[Path, Path]] = []
    for name, path in entry_points.items():
        module = path.partition(":")[0].split(".")
        here = [(r, f) for r in roots if (f := _module_file(r, module, present)) is not None]
        if here:
            found.append(here[0])
        elif _has_top_level(roots, module[0], present) or name in ("agent", "grader"):
            if name == "grader" and found and not _has_top_level(roots, module[0], present):
                continue
            raise ValueError(
                f"{name}={path!r}: the project {project.directory} has no module "
                f"{'.'.join(module)} (looked in {' and '.join(str(r / '.') for r in roots)})"
            )
    root, anchor = found[0]
    return Layout(root, tuple(f for _, f in found), anchor.parent / f"{RUNNER_MODULE}.py")


def _module_file(root: Path, module: Sequence[str], present: set[Path]) -> Path | None:
    base = root.joinpath(*module)
    for file in (base.with_name(f"{base.name}.py"), base / "__init__.py"):
        if file in present:
            return file
    return None


def _has_top_level(roots: Sequence[Path], name: str, present: set[Path]) -> bool:
    return any(
        f == root / f"{name}.py" or f.is_relative_to(root / name) for root in roots for f in present
    )


def adapted_pyproject(project: Project, files: Sequence[Path], layout: Layout) -> str:
    """The pyproject.toml to build with: the author's own wherever its backend can find the files.

    Otherwise the same name, version and dependencies, built by hatchling from an explicit list.
    Raises ValueError when that cannot be done for a field that another backend computes.
    """
    document: Any = tomlkit.parse(project.text)
    if project.backend is not None and layout.is_flat and _selects_files(project):
        _add_runner(project, document, layout)
    elif project.backend is None or layout.is_flat or not _hatchling_finds(project, files):
        _build_from_list(project, document, files, layout)
    return tomlkit.dumps(document)


def _is_hatchling(project: Project) -> bool:
    return project.backend is not None and project.backend.startswith("hatchling")


def _selects_files(project: Project) -> bool:
    if _is_hatchling(project):
        levels = (
            project.tool("hatch", "build"),
            project.tool("hatch", "build", "targets", "wheel"),
        )
        return any(key in (level or {}) for level in levels for key in SELECTORS)
    return bool(project.tool("setuptools", "py-modules"))


def _add_runner(project: Project, document: Any, layout: Layout) -> None:
    if not _is_hatchling(project):
        document["tool"]["setuptools"]["py-modules"].append(RUNNER_MODULE)
        return
    table = document["tool"]["hatch"]["build"]
    for key in ("targets", "wheel", "force-include"):
        table = table.setdefault(key, tomlkit.table())
    table[layout.runner.as_posix()] = f"{RUNNER_MODULE}.py"


def _hatchling_finds(project: Project, files: Sequence[Path]) -> bool:
    """Whether hatchling's own search succeeds; another backend is trusted to know its files."""
    if not _is_hatchling(project) or _selects_files(project):
        return True
    name = project.distribution.replace("-", "_")
    wanted = {f"{name}/__init__.py", f"src/{name}/__init__.py", f"{name}.py"}
    if any(file.as_posix().lower() in wanted for file in files):
        return True
    return sum(PurePosixPath(f).match(f"*/{name}/__init__.py") for f in files) == 1


def _build_from_list(
    project: Project, document: Any, files: Sequence[Path], layout: Layout
) -> None:
    dynamic = project.table.get("dynamic", [])
    if dynamic and not _is_hatchling(project):
        raise ValueError(
            f"{project.directory / 'pyproject.toml'}: project.dynamic is {dynamic}, but "
            f"{project.backend or 'no build backend'} cannot build top-level modules with a "
            "generated one beside them: write the fields out, or move the modules into a package"
        )
    if not _is_hatchling(project):
        document["build-system"] = {
            "requires": ["hatchling>=1.27"],
            "build-backend": "hatchling.build",
        }
    depth = len(layout.root.parts)
    shipped = {f.parts[depth] for f in files if f.is_relative_to(layout.root)}
    shipped = {n for n in shipped if n not in NOT_SHIPPED and not n.startswith(".")}
    names = sorted({*shipped, layout.runner.parts[depth]})
    wheel = {"only-include": [(layout.root / name).as_posix() for name in names]}
    if layout.root.parts:
        wheel["sources"] = [layout.root.as_posix()]
    tool = document.setdefault("tool", tomlkit.table())
    hatch = tool.setdefault("hatch", tomlkit.table())
    hatch["build"] = {"targets": {"wheel": wheel}}
