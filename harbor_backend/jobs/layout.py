"""From a rollout's directory to a trial's: the same files, also where Harbor's tools look.

A file gets a second name, a hard link: none is stored twice, none of the agent's is
read, and no link is followed.
"""

import os
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath

from osmosis_ai.rollout.artifacts import ARTIFACTS
from osmosis_ai.rollout.container.files import ARTIFACTS_DIR
from osmosis_ai.rollout.trajectory.save import TRAJECTORY

LOGS = "logs"
MANIFEST = "manifest.json"
OWN_ARTIFACTS = PurePosixPath(ARTIFACTS_DIR.lstrip("/"))
"""Where the files of ``/logs/artifacts`` are below a trial's ``artifacts``."""

# Harbor's own record of a trial, which has keys of plug-ins and paths of copies in it.
RECORDS = ("config.json", "lock.json", "result.json")

# The file of ours that holds what Harbor's viewer shows from another.
_SHOWN_AS = {
    "agent/workflow.log": "agent/command-0/stdout.txt",
    "verifier/grader.log": "verifier/test-stdout.txt",
}


def raise_logs(trial: Path) -> None:
    """Name what is in ``logs`` in the trial itself, too, and move the agent's trajectories there.

    Whatever holds ``agent/trajectory.json`` is a trial to ``harbor traces export``:
    with two, every trace would be exported twice.
    """
    logs = trial / LOGS
    if not is_directory(logs):
        return
    for name in RECORDS:
        _remove_file(logs / name)
    for entry in sorted(logs.iterdir()):
        if entry.name != ARTIFACTS:  # the manifest alone; the files are beside the logs
            _link_tree(entry, trial / entry.name)
    for root in _roots(logs):
        for path in (root / "agent").glob("trajectory*.json"):
            _remove_file(path)


def show_logs(trial: Path) -> None:
    """Name the output of a workflow and of an SDK grader as the viewer expects it, per step."""
    for root in _roots(trial):
        for ours, shown in _SHOWN_AS.items():
            if is_directory((root / ours).parent):
                _link_tree(root / ours, root / shown)


def trajectories(trial: Path) -> list[Path]:
    """What the agent itself wrote as its trajectory, and nobody checked."""
    paths = [root / "agent" / TRAJECTORY for root in _roots(trial)]
    return [path for path in paths if is_there(path)]


def place_trajectory(trial: Path, *, keep_own: bool) -> None:
    """Name our trajectory where Harbor's tools look for the agent's.

    With ``keep_own`` a trajectory that the agent wrote, of which ours was made, stays
    there; else it gets another name.
    """
    ours, agent = trial / TRAJECTORY, trial / "agent"
    if not is_there(ours) or (keep_own and trajectories(trial)):
        return
    if is_there(agent) and not is_directory(agent):
        agent.rename(trial / "agent-file")
    if is_there(agent / TRAJECTORY):
        (agent / TRAJECTORY).replace(agent / f"own-{TRAJECTORY}")
    _link_tree(ours, agent / TRAJECTORY)


def spread_artifacts(trial: Path, declared: Collection[PurePosixPath]) -> None:
    """Name each artifact by its path in the sandbox, as Harbor lays them out.

    Args:
        declared: where the artifacts that the task declares are below ``artifacts``;
            all others were in ``/logs/artifacts``.
    """
    artifacts = trial / ARTIFACTS
    if is_directory(trial / "steps") or not is_directory(artifacts):
        return  # steps have artifacts of their own
    apart = [artifacts / path for path in (OWN_ARTIFACTS, *declared)]
    for entry in sorted(artifacts.iterdir()):
        _link_tree(entry, artifacts / OWN_ARTIFACTS / entry.name, apart)


def is_there(path: Path) -> bool:
    """Whether the name is taken, by whatever it may be."""
    return os.path.lexists(path)


def is_directory(path: Path) -> bool:
    """Whether it is a directory itself, no link to one."""
    return not path.is_symlink() and path.is_dir()


def _link_tree(source: Path, target: Path, leave: Collection[Path] = ()) -> None:
    """Give a file, or every file of a tree, a second name where nothing is yet.

    There may be hundreds of thousands: paths are put together as text.
    """
    left = set(map(str, leave))
    if str(source) in left or not is_there(source):
        return
    if not is_directory(source):
        target.parent.mkdir(parents=True, exist_ok=True)
        _link(str(source), str(target))
        return
    pending = [(str(source), str(target))]
    while pending:
        folder, there = pending.pop()
        with os.scandir(folder) as listed:
            entries = list(listed)
        wanted = [entry for entry in entries if entry.path not in left]
        folders = [entry for entry in wanted if entry.is_dir(follow_symlinks=False)]
        pending.extend((entry.path, f"{there}/{entry.name}") for entry in folders)
        if not entries or len(folders) < len(wanted):
            os.makedirs(there, exist_ok=True)
        for entry in wanted:
            if not entry.is_dir(follow_symlinks=False):
                _link(entry.path, f"{there}/{entry.name}")


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        shutil.copy2(source, target, follow_symlinks=False)


def _remove_file(path: Path) -> None:
    if is_there(path) and not is_directory(path):
        path.unlink()


def _roots(folder: Path) -> Sequence[Path]:
    """The directory itself, and those of its steps."""
    steps = folder / "steps"
    inner = sorted(filter(is_directory, steps.iterdir())) if is_directory(steps) else []
    return [folder, *inner]
