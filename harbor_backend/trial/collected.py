"""What Harbor says it collected of a task's artifacts, held against what is there."""

import json
import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from harbor.models.trial.artifact_manifest import ArtifactManifestEntry
from harbor.models.trial.paths import EnvironmentPaths

from harbor_backend.places.limits import MAX_MANIFEST_BYTES
from harbor_backend.places.plain_file import read_plain

MANIFEST = "manifest.json"
INCOMPLETE = ".incomplete"
"""What the name of an artifact ends in that was not fetched whole."""

_CONVENTION = str(EnvironmentPaths().artifacts_dir)


def check_collected(trial_dir: Path) -> list[str]:
    """What is wrong with a trial's artifacts, or with each step's; names those that are cut.

    A declared artifact that Harbor did not collect, or that is not there after
    all, is a line. What was left of a fetch that failed is renamed, so that
    nobody takes it for the whole.
    """
    folders = [trial_dir / "artifacts", *sorted(trial_dir.glob("steps/*/artifacts"))]
    plain = [folder for folder in folders if not folder.is_symlink()]
    return [problem for folder in plain for problem in _check(folder, trial_dir)]


def _check(folder: Path, trial_dir: Path) -> list[str]:
    step = "" if folder.parent == trial_dir else f" in the step {folder.parent.name!r}"
    try:
        listed = json.loads(read_plain(folder / MANIFEST, MAX_MANIFEST_BYTES))
        entries = [ArtifactManifestEntry.model_validate(entry) for entry in listed]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, RecursionError) as exc:
        return [f"Harbor's list of artifacts{step} cannot be read: {exc}"]
    problems = []
    for entry in entries:
        if problem := _problem(entry, entries, folder):
            service = "" if entry.service is None else f" of the service {entry.service!r}"
            what = "" if entry.source == _CONVENTION else "The declared artifact "
            problems.append(f"{what}{entry.source}{service} {problem}{step}")
    return problems


def _problem(
    entry: ArtifactManifestEntry, entries: Iterable[ArtifactManifestEntry], folder: Path
) -> str | None:
    path = _host_path(entry, folder)
    if path is None:
        return f"was not collected: Harbor names {entry.destination!r} as its place"
    if entry.status == "failed":
        return _failed(entry, path)
    if entry.status == "skipped" and not any(_covers(other, entry) for other in entries):
        return f"was not collected: another one lies at {entry.destination} already"
    if entry.status != "empty" and not os.path.lexists(path):
        return "is missing: it was not there when the agent had ended, or is a special file"
    return None


def _failed(entry: ArtifactManifestEntry, path: Path) -> str:
    if not _holds_files(path):
        if entry.source == _CONVENTION:
            return "was not collected: it is no directory any more, or its fetch failed"
        return "is missing: it was not there when the agent had ended, or its fetch failed"
    path.rename(path.with_name(f"{path.name}{INCOMPLETE}"))
    return f"was not fetched whole; what came is in {entry.destination}{INCOMPLETE}"


def _holds_files(path: Path) -> bool:
    if path.is_symlink() or not path.is_dir():
        return os.path.lexists(path)
    return any(files for _, _, files in os.walk(path))


def _covers(other: ArtifactManifestEntry, entry: ArtifactManifestEntry) -> bool:
    """Whether an artifact was collected with another one, which holds it."""
    return (
        other.status in {"ok", "empty"}
        and other.service == entry.service
        and PurePosixPath(entry.source).is_relative_to(other.source)
    )


def _host_path(entry: ArtifactManifestEntry, folder: Path) -> Path | None:
    """Where an artifact lies, through no link; ``None`` if that is not below ``folder``."""
    path = folder.parent / entry.destination
    inside = path.parent.resolve().is_relative_to(folder.resolve())
    return path if inside or path == folder else None
