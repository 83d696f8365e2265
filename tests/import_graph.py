"""Which file of the project imports which, read from the sources without running them."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("osmosis_ai", "local_backend", "harbor_backend", "sandbox_images")
_NOT_CODE_OF_OURS = "osmosis_ai/templates"


@dataclass(frozen=True)
class Imports:
    """What one file imports, also inside functions and for type checkers only.

    Attributes:
        ours: modules of the project.
        at_run_time: those of them that are not for type checkers only.
        others: everything else that is imported at run time, the standard library included.
    """

    ours: frozenset[str]
    at_run_time: frozenset[str]
    others: frozenset[str]


@cache
def imports() -> dict[str, Imports]:
    """Every module of the project, and what it imports."""
    files = {_module(file): file for package in PACKAGES for file in _files(package)}
    return {module: _imports_of(module, file, files) for module, file in files.items()}


def circles(graph: dict[str, frozenset[str]]) -> list[set[str]]:
    """The groups of two or more modules that all lead to one another."""
    reached = {module: reachable(graph, module) for module in graph}
    found: list[set[str]] = []
    for module in graph:
        circle = {other for other in reached[module] if module in reached[other]}
        if len(circle) > 1 and circle not in found:
            found.append(circle)
    return found


def reachable(graph: dict[str, frozenset[str]], start: str) -> set[str]:
    """The modules that one leads to, at however many steps; itself only in a circle."""
    found: set[str] = set()
    ahead = [start]
    while ahead:
        for module in graph[ahead.pop()] - found:
            found.add(module)
            ahead.append(module)
    return found


def within(module: str, package: str) -> bool:
    """Whether a module is a package or in it."""
    return module == package or module.startswith(f"{package}.")


def _files(package: str) -> list[Path]:
    found = sorted((ROOT / package).rglob("*.py"))
    return [file for file in found if not file.is_relative_to(ROOT / _NOT_CODE_OF_OURS)]


def _module(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports_of(module: str, file: Path, files: dict[str, Path]) -> Imports:
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    tree = ast.parse(file.read_text(encoding="utf-8"))
    named = {_known(name, files) for name in _names(ast.walk(tree), package)} - {module}
    run = {_known(name, files) for name in _names(_run(tree), package)} - {module}
    ours = named & files.keys()
    return Imports(frozenset(ours), frozenset(ours & run), frozenset(run - files.keys()))


def _known(name: str, files: dict[str, Path]) -> str:
    """The module of ours that a name is, or is an attribute of; any other name as it is."""
    module = name
    while module and module not in files:
        module = module.rpartition(".")[0]
    return module or name


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those below ``if TYPE_CHECKING``."""
    children: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        children = node.orelse
    yield node
    for child in children:
        yield from _run(child)


def _names(nodes: Iterable[ast.AST], package: str) -> Iterator[str]:
    """What is imported, as absolute names down to the attribute."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            base += [node.module] if node.module else []
            yield from (".".join([*base, alias.name]) for alias in node.names)
