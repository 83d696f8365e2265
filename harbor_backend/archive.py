"""Bringing a trial's files to the rollout's directory on the host."""

import logging
from collections.abc import Iterator
from pathlib import Path

from harbor_backend.environments.safe_tree import LocalEntry, TreeWriter, local_entries
from osmosis_ai.rollout.artifacts import ARTIFACTS, rollout_dir

logger = logging.getLogger(__name__)

_OWN_ARTIFACTS = Path("logs/artifacts")
_LOGS = ("trial.log", "exception.txt", "agent", "verifier", "steps", "result.json")


def archive_trial(trial_dir: Path, root: Path, rollout_id: str) -> list[str]:
    """Copy artifacts and logs of a trial to ``<root>/<rollout_id>``; returns what went wrong.

    ``ctx.artifacts_dir`` becomes ``artifacts/`` itself, the task's declared
    artifacts keep their path in the sandbox below it, logs go to ``logs/``.
    Links and special files are left out. Never raises for a file.
    """
    problems: list[str] = []
    target = rollout_dir(root, rollout_id)
    collected = trial_dir / ARTIFACTS
    declared = [path for path in _children(collected) if path.name not in {"manifest.json", "logs"}]
    moves = [(collected / _OWN_ARTIFACTS, target / ARTIFACTS)]
    moves += [(path, target / ARTIFACTS / path.name) for path in declared]
    moves += [
        (path, target / ARTIFACTS / "logs" / path.name)
        for path in _children(collected / "logs")
        if path.name != _OWN_ARTIFACTS.name
    ]
    moves += [(trial_dir / name, target / "logs" / name) for name in _LOGS]
    for source, destination in moves:
        if source.is_symlink() or not source.exists():
            continue
        try:
            _copy(source, destination)
        except OSError as exc:
            problems.append(f"{source.relative_to(trial_dir)} was not archived: {exc}")
    for problem in problems:
        logger.warning("Rollout %s: %s", rollout_id, problem)
    return problems


def _copy(source: Path, destination: Path) -> None:
    writer = TreeWriter(destination)
    try:
        for entry in _plain(local_entries(source)):
            writer.entry(entry.header)
            for chunk in entry.chunks():
                writer.data(chunk)
    finally:
        writer.close()


def _plain(entries: Iterator[LocalEntry]) -> Iterator[LocalEntry]:
    return (entry for entry in entries if entry.header["kind"] != "link")


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() and not folder.is_symlink() else []
