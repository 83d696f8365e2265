"""Which classes and config objects of a project a bundle runs, by import path."""

from __future__ import annotations

import inspect
import keyword
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harbor_backend.program.bundle.staging import is_noise

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


@dataclass(frozen=True)
class EntryPoints:
    """Import paths "module:qualname", each importable inside the bundle.

    Raises ValueError when a path has another form, when there is neither an agent nor a
    grader, or when a config is given without the class that it configures.
    """

    agent: str | None = None
    workflow_config: str | None = None
    grader: str | None = None
    grader_config: str | None = None

    def __post_init__(self) -> None:
        if self.agent is None and self.grader is None:
            raise ValueError("a bundle needs an agent or a grader; both are None")
        for config, owner in (("workflow_config", "agent"), ("grader_config", "grader")):
            if getattr(self, config) is not None and getattr(self, owner) is None:
                raise ValueError(f"{config}={getattr(self, config)!r} was given without {owner}")
        for name, path in self.items():
            _check(name, path)

    def items(self) -> Iterator[tuple[str, str]]:
        """The name and import path of everything that is given."""
        return ((name, path) for name, path in asdict(self).items() if path is not None)


def _check(name: str, path: str) -> None:
    module, colon, attribute = path.partition(":")
    parts = [*module.split("."), *attribute.split(".")]
    if "<locals>" in attribute:
        raise ValueError(
            f"{name}={path!r} is defined inside a function, where a sandbox cannot import it: "
            "move it to the top level of its module"
        )
    if not colon or not all(part.isidentifier() and not keyword.iskeyword(part) for part in parts):
        raise ValueError(f'{name}={path!r} is not an import path of the form "module:attribute"')
    if module == "__main__":
        raise ValueError(
            f"{name}={path!r}: no module is called __main__ in a bundle; name the module that "
            "the file becomes there, such as 'main:...' for main.py"
        )


def source_of(anchor: type) -> Path:
    """The file in which a class is defined.

    Raises ValueError when it has none, as one typed at a prompt.
    """
    try:
        found = inspect.getsourcefile(anchor)
    except (TypeError, OSError):
        found = None
    if found is None or not Path(found).is_file():
        raise ValueError(
            f"{anchor.__module__}.{anchor.__qualname__} has no source file, so the project to "
            "bundle is unknown: define the class in a file, or pass code_dir="
        )
    return Path(found).resolve()


def module_in(project: Path, source: Path) -> str:
    """The name under which a project's file is imported inside its bundle.

    Independent of the name it was loaded as here: a main.py run as a script is `main`.
    Raises ValueError when the file lies outside the project.
    """
    project, source = project.resolve(), source.resolve()
    if not source.is_relative_to(project):
        raise ValueError(f"{source} is not in the project {project}: pass its own code_dir=")
    parts = source.relative_to(import_root(project, source)).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def import_root(project: Path, source: Path) -> Path:
    """The directory that a project's file is imported from: the project, or its `src/`."""
    src = project / "src"
    in_src = source.is_relative_to(src) and not (src / "__init__.py").exists()
    return src if in_src else project


def entry_point_for(value: object, project: Path) -> str:
    """The import path of a class, or of a module-level object, inside the project's bundle.

    Raises ValueError when no module of the project, nor the one that defines the object's
    type, has the object under a public name.
    """
    if inspect.isclass(value):
        return f"{module_in(project, source_of(value))}:{value.__qualname__}"
    for module in _candidates(type(value), project):
        for name, found in vars(module).items():
            if found is value and not name.startswith("_"):
                return f"{_name_in(project, module)}:{name}"
    raise ValueError(
        f"Cannot resolve import path of this {type(value).__qualname__} object: assign it to a "
        "public name at the top level of a module in the project, and pass that very object"
    )


def _candidates(kind: type, project: Path) -> Iterator[ModuleType]:
    own = sys.modules.get(kind.__module__)
    if own is not None:
        yield own
    for module in list(sys.modules.values()):
        if module is not own and _is_inside(module, project):
            yield module


def _is_inside(module: ModuleType, project: Path) -> bool:
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or not Path(file).resolve().is_relative_to(project.resolve()):
        return False
    return not any(map(is_noise, Path(file).resolve().relative_to(project.resolve()).parts))


def _name_in(project: Path, module: ModuleType) -> str:
    if _is_inside(module, project):
        return module_in(project, Path(str(module.__file__)))
    return module.__name__
