"""A rollout project: where it is, and what its pyproject.toml says."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from harbor_backend.program.bundle.entry_points import source_of

SDK_NAME = "osmosis-ai"


def project_dir_for(anchor: type | Path | str) -> Path:
    """The project that owns a class: the nearest directory above it with a pyproject.toml.

    A path is taken for the project directory itself. Raises ValueError naming the class, its
    file and the remedy when there is none, and when the project is this SDK.
    """
    if not isinstance(anchor, type):
        directory = Path(anchor).resolve()
        if not (directory / "pyproject.toml").is_file():
            raise ValueError(f"project directory {directory} has no pyproject.toml: add one")
        return directory
    source = source_of(anchor)
    name = f"{anchor.__module__}.{anchor.__qualname__}"
    for directory in source.parents:
        if (directory / "pyproject.toml").is_file():
            break
    else:
        raise ValueError(
            f"{name} ({source}) has no pyproject.toml above it, so the project to bundle is "
            "unknown: add a pyproject.toml beside the file, or pass code_dir="
        )
    if Project(directory).table.get("name") == SDK_NAME:
        raise ValueError(
            f"{name} ({source}) belongs to {SDK_NAME} itself, which is no rollout project: put "
            "the class into a directory with its own pyproject.toml, or pass code_dir="
        )
    return directory


@dataclass(frozen=True)
class Project:
    """A directory with a pyproject.toml."""

    directory: Path

    @cached_property
    def text(self) -> str:
        """The pyproject.toml as written."""
        return (self.directory / "pyproject.toml").read_text(encoding="utf-8")

    @cached_property
    def toml(self) -> dict[str, Any]:
        """The pyproject.toml, parsed. Raises ValueError when it is not TOML."""
        try:
            return tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"{self.directory / 'pyproject.toml'} is not TOML: {error}") from error

    @property
    def table(self) -> dict[str, Any]:
        """The `[project]` table, empty when there is none."""
        return dict(self.toml.get("project", {}))

    @property
    def distribution(self) -> str:
        """The distribution's normalised name, one path segment.

        Raises ValueError when pyproject.toml has none, or one that is not a valid name.
        """
        name = self.table.get("name")
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9]([\w.-]*[A-Za-z0-9])?", name):
            raise ValueError(
                f"{self.directory / 'pyproject.toml'}: project.name is {name!r}: a rollout "
                "project needs a [project] table with a name and a version"
            )
        return canonicalize_name(name)

    @property
    def backend(self) -> str | None:
        """The build backend, None when the project declares no `[build-system]`."""
        system = self.toml.get("build-system")
        if system is None:
            return None
        return str(system.get("build-backend", "setuptools.build_meta:__legacy__"))

    def tool(self, *keys: str) -> Any:
        """A value below `[tool]`, None where it is missing."""
        value: Any = self.toml.get("tool", {})
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def check_sources(self) -> None:
        """Refuse dependencies that only `[tool.uv.sources]` can find: a wheel does not carry it.

        Raises ValueError naming the first; installing a namesake from the index in its place
        would run other code than the author's.
        """
        sources = self.tool("uv", "sources") or {}
        plain = {canonicalize_name(name): spec for name, spec in sources.items()}
        for text in self.table.get("dependencies", []):
            try:
                requirement = Requirement(text)
            except InvalidRequirement:
                continue
            name = canonicalize_name(requirement.name)
            if name == SDK_NAME or name not in plain or requirement.url:
                continue
            spec = plain[name]
            if any(k in s for s in (spec if isinstance(spec, list) else [spec]) for k in _LOCAL):
                raise ValueError(
                    f"{self.directory / 'pyproject.toml'}: dependency {text!r} comes from "
                    f"tool.uv.sources ({spec}), which a wheel cannot carry: write it as "
                    f"'{requirement.name} @ <url>', or copy its code into the project"
                )


_LOCAL = ("path", "workspace", "git", "url")
