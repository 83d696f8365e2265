"""What a bundle wheel says about itself."""

from __future__ import annotations

import ast
import configparser
import re
import zipfile
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement

RUNNER_MODULE = "osmosis_bundle_main"


@dataclass(frozen=True)
class BundleInfo:
    """A bundle wheel and what it runs.

    `agent`, `workflow_config`, `grader` and `grader_config` are import paths
    "module:attribute" inside the bundle. For a wheel that declares console scripts instead of
    a runner module, `agent` and `grader` are the scripts' targets, functions that end in
    `:agent_main` and `:grader_main`, and `runner` is None. `requirements` are the wheel's own
    without those of its extras, markers as written.
    """

    wheel: Path
    name: str
    version: str
    agent: str | None
    grader: str | None
    requirements: tuple[str, ...]
    workflow_config: str | None = None
    grader_config: str | None = None
    runner: str | None = None


def inspect_bundle(wheel: Path) -> BundleInfo:
    """Read a bundle wheel without running any of it.

    Raises ValueError when the file is no wheel or holds no runner.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            return _read(Path(wheel), archive)
    except (OSError, zipfile.BadZipFile) as error:
        raise ValueError(f"bundle {wheel} is not a readable wheel: {error}") from error


def _read(wheel: Path, archive: zipfile.ZipFile) -> BundleInfo:
    names = archive.namelist()
    info = next((n for n in names if n.endswith(".dist-info/METADATA") and n.count("/") == 1), None)
    if info is None:
        raise ValueError(f"bundle {wheel} is not a wheel: it holds no METADATA")
    metadata = HeaderParser().parsestr(archive.read(info).decode())
    requirements = tuple(
        text for text in metadata.get_all("Requires-Dist", []) if not is_extra_gated(text)
    )
    common = (wheel, metadata["Name"], metadata["Version"])
    for name in names:
        if PurePosixPath(name).name == f"{RUNNER_MODULE}.py":
            found = _constants(archive.read(name).decode())
            return BundleInfo(
                *common,
                agent=found.get("AGENT"),
                grader=found.get("GRADER"),
                requirements=requirements,
                workflow_config=found.get("WORKFLOW_CONFIG"),
                grader_config=found.get("GRADER_CONFIG"),
                runner=name.removesuffix(".py").replace("/", "."),
            )
    targets = _script_targets(archive, str(PurePosixPath(info).with_name("entry_points.txt")))
    agent = next((t for t in targets if t.endswith(":agent_main")), None)
    grader = next((t for t in targets if t.endswith(":grader_main")), None)
    if agent is None and grader is None:
        raise ValueError(
            f"bundle {wheel} has no runner: neither a module {RUNNER_MODULE} nor a console script "
            "that ends in ':agent_main' or ':grader_main'. Build it with "
            "osmosis_ai.packaging.build_bundle(project_dir, entry_points=EntryPoints(...))"
        )
    return BundleInfo(*common, agent=agent, grader=grader, requirements=requirements)


def is_extra_gated(requirement: str) -> bool:
    """Whether a requirement belongs to one of its distribution's extras only."""
    marker = Requirement(requirement).marker
    unquoted = re.sub(r"'[^']*'|\"[^\"]*\"", "", str(marker or ""))
    return re.search(r"\bextra\b", unquoted) is not None


def _constants(source: str) -> dict[str, str | None]:
    return {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }


def _script_targets(archive: zipfile.ZipFile, name: str) -> list[str]:
    if name not in archive.namelist():
        return []
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    parser.read_string(archive.read(name).decode())
    if not parser.has_section("console_scripts"):
        return []
    return [target.strip() for _, target in parser.items("console_scripts")]
