"""What must hold of every rollout, after all kills."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.experiments.server_kill.rollouts import Rollout

_OFTEN_ENOUGH = "it was run again"


def lost_or_doubled(rollout: Rollout, runs: int) -> Iterator[str]:
    """What is wrong with one rollout; ``runs`` is how often a backend was asked to run it."""
    if rollout.result is None:
        yield "admitted, and no terminal result" if rollout.admitted else "never admitted"
        return
    ended = rollout.ended
    if ended["status"] == "success":
        yield from _foreign(rollout)
    elif rollout.rerun:
        # A server does not let one rollout end it for ever.
        if _OFTEN_ENOUGH not in (ended["err_message"] or "") or runs < 1:
            yield f"asked to run again, and ended as {ended}"
    elif "restart" not in (ended["err_message"] or ""):
        yield f"failed, and not because the engine restarted: {ended}"
    if not rollout.rerun and runs > 1:
        yield f"ran {runs} times, and asked to fail instead"
    if rollout.protocol == "callback":
        yield from _told_wrongly(rollout)


def _foreign(rollout: Rollout) -> Iterator[str]:
    """Whether a result is another rollout's, or none at all."""
    ended = rollout.ended
    if rollout.protocol == "callback":
        if ended["reward"] != rollout.reward:
            yield f"its reward should be {rollout.reward}: {ended}"
        return
    sample = ended["sample"]
    if sample["reward"] != rollout.reward or sample["label"] != rollout.id:
        yield f"its sample is not its own: {sample}"
    if sample["messages"][-1]["content"] != f"answer of {rollout.id}":
        yield f"its answer is not its own: {sample['messages']}"


def _told_wrongly(rollout: Rollout) -> Iterator[str]:
    """Whether callbacks are missing, differ, or say another thing than the result."""
    for kind, callback in rollout.callbacks.items():
        if len(set(callback.bodies)) > 1:
            yield f"{kind} callbacks with different content: {set(callback.bodies)}"
        if not callback.acknowledged_in:
            yield f"its {kind} callback was never taken"
    completion, grader = rollout.callbacks.get("completion"), rollout.callbacks.get("grader")
    status = rollout.ended["status"]
    if completion is None:
        yield "no completion callback"
    elif status == "success" and completion.content["status"] != "success":
        yield f"succeeded, and its completion says {completion.content}"
    if status == "success":
        if grader is None:
            yield "no grader callback"
        elif (grader.content["status"], grader.content["sample"]["reward"]) != (
            "success",
            rollout.reward,
        ):
            yield f"its grader callback is not its own: {grader.content}"
    elif grader is not None and grader.content["status"] != "failure":
        yield f"failed, and its grader callback says {grader.content}"
    elif grader is None and completion is not None and completion.content["status"] == "success":
        yield "failed after a completion that says success, and no grader callback says so"


def judge(rollouts: dict[str, Rollout], runs: Path) -> list[str]:
    """Every rollout that breaks a promise."""
    problems = []
    for rollout in rollouts.values():
        file = runs / rollout.id
        times = file.stat().st_size if file.exists() else 0
        problems += [f"{rollout.id}: {text}" for text in lost_or_doubled(rollout, times)]
    return problems


def check_database(path: Path) -> list[str]:
    """What SQLite itself finds wrong with the file."""
    with sqlite3.connect(path) as database:
        found = [row[0] for row in database.execute("PRAGMA integrity_check")]
    return [] if found == ["ok"] else [f"the database is damaged: {found[:3]}"]


def endings(rollouts: dict[str, Rollout]) -> dict[str, int]:
    """How many rollouts ended how, by protocol."""
    counts = Counter(
        f"{rollout.protocol}, {'rerun' if rollout.rerun else 'fail'}: {rollout.ended['status']}"
        for rollout in rollouts.values()
        if rollout.result is not None
    )
    return dict(sorted(counts.items()))
