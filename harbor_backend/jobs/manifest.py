"""``artifacts/manifest.json``: what was collected of a trial, and where it is."""

import json
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from harbor.models.task.artifacts import with_convention_entry
from harbor.models.task.config import ArtifactConfig, TaskConfig
from harbor.models.trial.artifact_manifest import ArtifactManifestEntry
from harbor.trial.artifact_handler import artifact_host_path
from pydantic import TypeAdapter

from harbor_backend.jobs.layout import LOGS, MANIFEST, OWN_ARTIFACTS, is_directory
from harbor_backend.jobs.reading import read_file
from osmosis_ai.common.files import write_atomically
from osmosis_ai.rollout.artifacts import ARTIFACTS
from osmosis_ai.rollout.container.files import ARTIFACTS_DIR

_ENTRIES = TypeAdapter(list[ArtifactManifestEntry])


def declared_artifacts(task: Path) -> list[ArtifactConfig]:
    """What a task says is to be collected, ``/logs/artifacts`` among it."""
    try:
        text = (task / "task.toml").read_text(encoding="utf-8")
        declared = TaskConfig.model_validate_toml(text).artifacts
    except (OSError, ValueError):
        declared = []
    return with_convention_entry(declared, convention_source=ARTIFACTS_DIR)


def places(declared: Sequence[ArtifactConfig]) -> set[PurePosixPath]:
    """Where they belong below ``artifacts``."""
    return {PurePosixPath(artifact_host_path(Path(), one).as_posix()) for one in declared}


def write_manifest(trial: Path, declared: Sequence[ArtifactConfig]) -> None:
    """Write the manifest of a trial whose artifacts are in place: Harbor's, or what is there."""
    artifacts = trial / ARTIFACTS
    if not is_directory(artifacts) or is_directory(trial / "steps"):
        return
    entries = _recorded(trial / LOGS / ARTIFACTS / MANIFEST)
    if entries is None:
        entries = [_entry(trial, one) for one in declared]
    if any(one.source == ARTIFACTS_DIR and one.status == "ok" for one in entries):
        # It may have been empty: of a rollout, its files alone are kept.
        (artifacts / OWN_ARTIFACTS).mkdir(parents=True, exist_ok=True)
    text = json.dumps([entry.model_dump(mode="json") for entry in entries], indent=2)
    write_atomically(artifacts / MANIFEST, text)


def _recorded(path: Path) -> list[ArtifactManifestEntry] | None:
    try:
        content = read_file(path)
        return None if content is None else _ENTRIES.validate_json(content)
    except (OSError, ValueError):
        return None


def _entry(trial: Path, artifact: ArtifactConfig) -> ArtifactManifestEntry:
    place = artifact_host_path(trial / ARTIFACTS, artifact)
    is_folder = is_directory(place) or not (place.is_file() or place.suffix)
    if place.is_symlink():
        status = "failed"
    elif place.is_file() or (is_folder and place.is_dir() and any(place.iterdir())):
        status = "ok"
    else:
        # Nothing tells an empty directory from one that was not there, but for our own.
        own = artifact.source.rstrip("/") == ARTIFACTS_DIR
        status = "empty" if own or is_directory(place) else "failed"
    return ArtifactManifestEntry.model_validate(
        {
            "source": artifact.source,
            "destination": place.relative_to(trial).as_posix(),
            "type": "directory" if is_folder else "file",
            "status": status,
            "service": artifact.service,
            "exclude": list(artifact.exclude) if is_folder else [],
        }
    )
