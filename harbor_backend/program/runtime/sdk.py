"""The SDK as a sandbox gets it: a copy of what runs on the host, without its host-only parts."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import shutil
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harbor_backend.program.bundle.project import SDK_NAME
from harbor_backend.program.bundle.staging import hash_files

HOST_ONLY = frozenset({"_tasks", "cli", "eval", "gateway", "server", "templates"})
# A rollout project's main.py may name LocalBackend, which is light.
PACKAGES = ("osmosis_ai", "local_backend")


@dataclass(frozen=True)
class Sdk:
    """The running SDK: the directory that holds its packages."""

    root: Path

    @classmethod
    def running(cls) -> Sdk:
        """The SDK that this code belongs to, installed or a source tree.

        Raises RuntimeError when its files are not on a file system.
        """
        spec = importlib.util.find_spec("osmosis_ai")
        places = list(spec.submodule_search_locations or []) if spec else []
        if not places or not Path(places[0]).is_dir():
            raise RuntimeError("the osmosis_ai package is not a directory on this machine")
        return cls(Path(places[0]).resolve().parent)

    @cached_property
    def files(self) -> list[Path]:
        """The files that go into a sandbox, relative to `root`, sorted."""
        return sorted(
            file.relative_to(self.root)
            for package in PACKAGES
            for part in sorted((self.root / package).glob("*"))
            if not (package == "osmosis_ai" and part.name in HOST_ONLY)
            for file in ([part] if part.is_file() else part.rglob("*"))
            if file.is_file() and "__pycache__" not in file.parts and file.suffix != ".pyc"
        )

    @cached_property
    def _pyproject(self) -> dict[str, object] | None:
        """The `[project]` table of a source tree, newer than what an editable install recorded."""
        file = self.root / "pyproject.toml"
        if not file.is_file():
            return None
        table = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {})
        return dict(table) if table.get("name") == SDK_NAME else None

    @property
    def version(self) -> str:
        """The SDK's version."""
        if self._pyproject is not None:
            return str(self._pyproject["version"])
        return importlib.metadata.version(SDK_NAME)

    @cached_property
    def requires(self) -> list[str]:
        """The SDK's own requirements, those of extras with their marker.

        Raises RuntimeError when the SDK was neither installed nor is a source tree.
        """
        if self._pyproject is None:
            try:
                return importlib.metadata.requires(SDK_NAME) or []
            except importlib.metadata.PackageNotFoundError:
                raise RuntimeError(
                    f"{SDK_NAME} has no metadata on this machine: install it with uv or pip"
                ) from None
        table = tomllib.loads((self.root / "pyproject.toml").read_text(encoding="utf-8"))
        project = table["project"]
        found = list(project.get("dependencies", []))
        for extra, requirements in project.get("optional-dependencies", {}).items():
            for requirement in requirements:
                plain, semicolon, marker = requirement.partition(";")
                condition = f"({marker.strip()}) and " if semicolon else ""
                found.append(f"{plain.strip()} ; {condition}extra == '{extra}'")
        return found

    def digest(self) -> str:
        """A hash over the files and requirements."""
        digest = hashlib.sha256(repr((self.version, self.requires)).encode())
        hash_files(self.root, self.files, digest)
        return digest.hexdigest()

    def copy_to(self, site_packages: Path) -> None:
        """Copy the packages, with metadata from which `importlib.metadata` knows the version."""
        for file in self.files:
            copy = site_packages / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.root / file, copy)
        metadata = site_packages / f"{SDK_NAME.replace('-', '_')}-{self.version}.dist-info"
        metadata.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {SDK_NAME}", f"Version: {self.version}"]
        lines += [f"Requires-Dist: {requirement}" for requirement in self.requires]
        (metadata / "METADATA").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (metadata / "INSTALLER").write_text("osmosis\n", encoding="utf-8")
