"""Making a job of rollouts that a server saved."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from harbor_backend.jobs.directory import JobConflictError, JobDirectory
from harbor_backend.jobs.saved import read_saved, saved_ids
from harbor_backend.jobs.values import WORKFLOW, JobDescription, TrialEnd
from harbor_backend.places.safe_tree import TreeWriter, UnsafeEntryError, local_entries
from harbor_backend.program.native_agents import ENDPOINTLESS

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Exported:
    """What became of an export: the trials by their names, and what is not among them."""

    trials: list[TrialEnd]
    problems: list[str]


def export_rollouts(
    root: Path,
    target: Path,
    *,
    ids: Collection[str] = (),
    agent: str | None = None,
    tasks: Path | None = None,
) -> Exported:
    """Copy saved rollouts into a new job directory; those there stay as they are.

    Args:
        root: the folder that a rollout server saves to.
        target: where the job is to be; it must be empty, or not be there yet.
        ids: which rollouts; all that left something when it is empty.
        agent: leave out those of any other agent, by its name in Harbor's results.
        tasks: the folder of their tasks, or their one task; without it the job can be
            read, and not gone on with.

    Raises:
        JobConflictError: the target is not empty, or the rollouts are of several agents.
        ValueError: there is no such rollout.
        OSError: the job cannot be written.
    """
    if target.exists() and any(target.iterdir()):
        raise JobConflictError(f"{target} is not empty: an export goes to a directory of its own")
    rollouts, problems = _read(root, ids, tasks)
    if agent is not None:
        rollouts = [rollout for rollout in rollouts if rollout.agent in {None, agent}]
    if not rollouts:
        raise ValueError(f"{root} holds no rollout to export; " + "; ".join(problems or ["none"]))
    job = JobDirectory(target, _description(rollouts))
    job.begin([rollout.end.task for rollout in rollouts])
    done = []
    for end in (rollout.end for rollout in rollouts):
        try:
            _copy(root / end.name, target / end.name)
            job.add(end)
            done.append(end)
        except (ValueError, OSError) as exc:
            problems.append(f"{end.name}: {exc}")
            logger.warning("Rollout %s was not exported: %s", end.name, exc)
    job.close()
    return Exported(done, problems)


@dataclass(frozen=True)
class _Read:
    """What is kept of a rollout while all are read: none of its documents."""

    end: TrialEnd
    agent: str | None
    model: str | None


def _read(root: Path, ids: Collection[str], tasks: Path | None) -> tuple[list[_Read], list[str]]:
    rollouts, problems = [], []
    for rollout_id in sorted(ids) or saved_ids(root):
        try:
            saved = read_saved(root, rollout_id)
            rollouts.append(_Read(saved.end(tasks), saved.agent, saved.model))
        except (ValueError, OSError) as exc:
            problems.append(f"{rollout_id}: {exc}")
    return rollouts, problems


def _description(rollouts: Sequence[_Read]) -> JobDescription:
    """What they have in common.

    Raises:
        JobConflictError: their agents differ.
    """
    agents = {rollout.agent for rollout in rollouts if rollout.agent is not None}
    if len(agents) > 1:
        raise JobConflictError(
            f"a job has one agent, and these rollouts are of {', '.join(sorted(agents))}: choose "
            "one with --agent"
        )
    agent = agents.pop() if agents else WORKFLOW
    is_native = agent != WORKFLOW
    has_model = is_native and agent not in ENDPOINTLESS
    models = [rollout.model for rollout in rollouts if rollout.model is not None]
    return JobDescription(agent, is_native, model=models[0] if has_model and models else None)


def _copy(source: Path, target: Path) -> None:
    writer = TreeWriter(target)
    try:
        for entry in local_entries(source):
            try:
                writer.entry(entry.header)
            except UnsafeEntryError as exc:
                logger.warning("%s is not copied: %s", source / entry.header["name"], exc)
                continue
            for chunk in entry.chunks():
                writer.data(chunk)
    finally:
        writer.close()
