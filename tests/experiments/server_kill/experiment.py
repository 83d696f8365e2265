"""The whole experiment: load, kills, and what came of it."""

import asyncio
import random
import socket
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests.experiments.server_kill import sandboxes
from tests.experiments.server_kill.callers import Callers
from tests.experiments.server_kill.moments import AT_RANDOM, MOMENTS, STARTING, Census, Moments
from tests.experiments.server_kill.receiver import Receiver
from tests.experiments.server_kill.rollouts import Rollout
from tests.experiments.server_kill.verdict import check_database, endings, judge
from tests.experiments.server_kill.victim import Victim, victim

_SETTLE_SEC = 180.0
_SANDBOX_SEC = 60.0


@dataclass(frozen=True)
class Plan:
    """What to do.

    ``moments`` are taken in turn; a life lasts ``uptime_sec`` (from, to), and then until the
    moment comes, ``moment_sec`` at most.
    """

    kills: int
    backend: Literal["local", "harbor"] = "local"
    callers: int = 12
    seed: int = 0
    moments: tuple[str, ...] = MOMENTS
    uptime_sec: tuple[float, float] = (0.1, 0.8)
    moment_sec: float = 5.0


@dataclass
class Report:
    """What happened."""

    problems: list[str] = field(default_factory=list)
    killed_at: Counter[str] = field(default_factory=Counter)
    caught: Counter[str] = field(default_factory=Counter)
    endings: dict[str, int] = field(default_factory=dict)
    rollouts: int = 0
    reads: int = 0
    replays: int = 0
    callbacks: int = 0
    repeated: int = 0
    starts: list[float] = field(default_factory=list)
    seconds: float = 0.0


async def experiment(plan: Plan, directory: Path) -> Report:
    """Kill a server ``plan.kills`` times under load, and judge what callers and trainers saw."""
    rng = random.Random(plan.seed)
    report, moments, census = Report(), Moments(), Census()
    rollouts: dict[str, Rollout] = {}
    before = sandboxes.left_behind() if plan.backend == "harbor" else set()
    began = time.monotonic()
    async with victim(directory, plan.backend, _free_port()) as server:
        receiver = Receiver(
            rollouts, moments, census, report.problems, lambda: server.incarnation, rng
        )
        async with receiver.running():
            callers = Callers(server.url, receiver, rollouts, moments, census, report.problems, rng)
            try:
                async with asyncio.timeout(None) as limit, asyncio.TaskGroup() as group:
                    group.create_task(callers.run(plan.callers))
                    for number in range(plan.kills):
                        moment = plan.moments[number % len(plan.moments)]
                        moment = await _one_life(server, moment, moments, census, plan, rng)
                        report.killed_at[moment] += 1
                    await server.spawn()
                    await server.answering()
                    callers.stopping = True
                    limit.reschedule(asyncio.get_running_loop().time() + _SETTLE_SEC)
            except TimeoutError:
                report.problems.append(f"rollouts did not end within {_SETTLE_SEC} s")
            await _callbacks_taken(rollouts, receiver)
            if code := await server.stop():
                report.problems.append(f"a server that was asked to stop ended with {code}")
            await server.spawn()
            await server.answering()
            await callers.check_again()
            if plan.backend == "harbor":
                report.problems += await _sandboxes_gone(before)
            await server.stop()
    report.problems += judge(rollouts, directory / "runs")
    report.problems += check_database(directory / "rollouts" / "rollouts.db")
    report.caught, report.endings = census.caught, endings(rollouts)
    report.rollouts, report.reads, report.replays = len(rollouts), callers.reads, callers.replays
    taken = [callback for rollout in rollouts.values() for callback in rollout.callbacks.values()]
    report.callbacks = len(taken)
    report.repeated = sum(len(callback.bodies) > 1 for callback in taken)
    report.starts = server.starts
    report.seconds = time.monotonic() - began
    return report


async def _one_life(
    server: Victim,
    moment: str,
    moments: Moments,
    census: Census,
    plan: Plan,
    rng: random.Random,
) -> str:
    """Start the server and kill it; returns at which moment that was."""
    await server.spawn()
    if moment == STARTING and server.starts:
        # From before its first line until well after its first answer.
        await asyncio.sleep(rng.uniform(0.3, 1.1) * max(server.starts[-5:]))
    else:
        await server.answering()
        await asyncio.sleep(rng.uniform(*plan.uptime_sec))
        if moment != AT_RANDOM and not await moments.wait(moment, plan.moment_sec):
            moment = AT_RANDOM
        await asyncio.sleep(rng.uniform(0, 0.01))
    census.count()
    await server.kill()
    return moment


async def _callbacks_taken(rollouts: dict[str, Rollout], receiver: Receiver) -> None:
    """Wait until every callback that has come once was taken, and no more come."""

    def complete() -> bool:
        return all(
            rollout.protocol == "polling"
            or rollout.result is None
            or (
                "completion" in rollout.callbacks
                and all(callback.acknowledged_in for callback in rollout.callbacks.values())
                and (rollout.ended["status"] != "success" or "grader" in rollout.callbacks)
            )
            for rollout in rollouts.values()
        )

    try:
        async with asyncio.timeout(_SETTLE_SEC), receiver.changed:
            await receiver.changed.wait_for(complete)
    except TimeoutError:
        return  # the verdict names those that are missing


async def _sandboxes_gone(before: set[str]) -> list[str]:
    until = time.monotonic() + _SANDBOX_SEC
    while left := sandboxes.left_behind() - before:
        if time.monotonic() > until:
            return [f"sandboxes remain after {_SANDBOX_SEC} s: {sorted(left)}"]
        await asyncio.sleep(1)
    return []


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
