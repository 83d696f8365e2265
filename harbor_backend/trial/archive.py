"""Bringing a trial's files to the rollout's directory on the host."""

import contextlib
import logging
from pathlib import Path

from harbor_backend.places.limits import MAX_DOWNLOAD_BYTES, MAX_DOWNLOAD_ENTRIES
from harbor_backend.places.safe_tree import SPECIAL, LocalEntry, TreeWriter, tree_entries
from harbor_backend.trial.collected import MANIFEST, check_collected
from harbor_backend.trial.moving import move_plain
from osmosis_ai.rollout.artifacts import ARTIFACTS, rollout_dir

logger = logging.getLogger(__name__)

_OWN_ARTIFACTS = "artifacts"
_LOGS = (
    "trial.log",
    "exception.txt",
    "agent",
    "verifier",
    "steps",
    "result.json",
    "config.json",
    "lock.json",
)


def archive_trial(
    trial_dir: Path, root: Path, rollout_id: str, *, has_run: bool = True, move: bool = False
) -> list[str]:
    """Copy artifacts and logs of a trial to ``<root>/<rollout_id>``; returns what went wrong.

    ``ctx.artifacts_dir`` becomes ``artifacts/`` itself, the task's declared
    artifacts keep their path in the sandbox below it; logs and Harbor's own
    files go to ``logs/``. Links are copied as links where they stay inside; what
    is left out, missing or more than the budget is told. Never raises for a file.
    Of a trial that has not run, no artifact is missing. With ``move`` nobody needs the
    trial's own directory any more, and artifacts need not be copied.
    """
    archive = _Archive(trial_dir, move=move)
    target = rollout_dir(root, rollout_id)
    if has_run:
        archive.check()
    collected = trial_dir / ARTIFACTS
    for path in archive.children(collected):
        if path.name == "logs":
            for inner in archive.children(path):
                is_own = inner.name == _OWN_ARTIFACTS
                to = target / ARTIFACTS if is_own else target / ARTIFACTS / "logs" / inner.name
                archive.artifact(inner, to)
        else:
            above = target / "logs" if path.name == MANIFEST else target
            archive.artifact(path, above / ARTIFACTS / path.name)
    for name in _LOGS:
        archive.copy(trial_dir / name, target / "logs" / name)
    for problem in archive.problems:
        logger.warning("Rollout %s: %s", rollout_id, problem)
    return archive.problems


class _Archive:
    """Copies what a trial left, and keeps what went wrong instead of raising it.

    Where an environment mounts the trial's directories, nothing has limited yet
    what lies in them: the budget is that of a download.
    """

    def __init__(self, trial_dir: Path, *, move: bool) -> None:
        self._trial_dir = trial_dir
        self._may_move = move
        self._bytes_left = MAX_DOWNLOAD_BYTES
        self._entries_left = MAX_DOWNLOAD_ENTRIES
        self.problems: list[str] = []

    def check(self) -> None:
        """Hold Harbor's list of artifacts against what is there."""
        try:
            self.problems += check_collected(self._trial_dir)
        except OSError as exc:
            self.problems.append(f"The artifacts could not be checked: {exc}")

    def children(self, folder: Path) -> list[Path]:
        """What lies in a directory, if it is one."""
        try:
            if folder.is_symlink():
                self._told(folder, "it is a link")
                return []
            return sorted(folder.iterdir()) if folder.is_dir() else []
        except OSError as exc:
            self._told(folder, exc)
            return []

    def artifact(self, source: Path, destination: Path) -> None:
        """Move what can be, and copy the rest."""
        if self._may_move:
            with contextlib.suppress(OSError):  # the copy says what it is
                size, entries = move_plain(
                    source, destination, self._bytes_left, self._entries_left
                )
                self._bytes_left -= size
                self._entries_left -= entries
        self.copy(source, destination)

    def copy(self, source: Path, destination: Path) -> None:
        """Copy a file or a tree, if it is there."""
        try:
            source.lstat()
        except FileNotFoundError:
            return
        except OSError as exc:
            self._told(source, exc)
            return
        try:
            with TreeWriter(destination) as writer:
                left_out = self._copy(source, writer)
            left_out += writer.refused_links
            if left_out:
                self.problems.append(
                    f"{left_out} special files or unsafe links in "
                    f"{source.relative_to(self._trial_dir)} were left out"
                )
        except (OSError, ValueError) as exc:  # ours too, of what is unsafe or too much
            self._told(source, exc)

    def _copy(self, source: Path, writer: TreeWriter) -> int:
        """Write what lies at ``source``; returns how many special files do not go."""
        special = 0
        for entry in tree_entries(source):
            self._entries_left -= 1
            if self._entries_left < 0:
                raise ValueError(f"more than {MAX_DOWNLOAD_ENTRIES} files; the rest is missing")
            if entry.header["kind"] == SPECIAL:
                special += 1
            elif entry.size > self._bytes_left:
                self._told(
                    source / entry.header["name"],
                    f"it holds {entry.size} bytes, and all files may hold {MAX_DOWNLOAD_BYTES}",
                )
            else:
                self._write(entry, writer)
        return special

    def _write(self, entry: LocalEntry, writer: TreeWriter) -> None:
        writer.entry(entry.header)
        for chunk in entry.chunks():
            self._bytes_left -= len(chunk)
            if self._bytes_left < 0:
                raise ValueError(f"more than {MAX_DOWNLOAD_BYTES} bytes; the rest is missing")
            writer.data(chunk)
        writer.end_file()

    def _told(self, path: Path, reason: object) -> None:
        self.problems.append(f"{path.relative_to(self._trial_dir)} was not archived: {reason}")
