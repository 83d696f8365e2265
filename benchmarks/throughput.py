"""Rollouts per minute and processor seconds per rollout, against Harbor's own environment.

    python -m benchmarks.throughput [--rollouts N] [--peer-rollouts N] [--rounds K]

Runs the same no-op workflow and grader (template mode) and the same oracle
task (dataset mode) through HarborBackend on the environment that it chooses,
and on Harbor's own Docker environment with a stop grace period of zero. The
two take turns, so that noise meets both. Processor time is the whole
machine's: run it on a quiet one.
"""

import argparse
import asyncio
import logging
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harbor.models.environment_type import EnvironmentType
from harbor.models.trial.config import EnvironmentConfig
from harbor.trial.queue import TrialQueue

from benchmarks.machine import busy_seconds, describe
from harbor_backend import HarborBackend
from osmosis_ai.rollout import ExecutionOutcome, ExecutionRequest
from osmosis_ai.rollout.artifacts import ARTIFACT_ROOT_ENV

ROOT = Path(__file__).parents[1]
PHASES = ("environment_setup", "agent", "verifier", "total")
ORACLE_TASK = "log-report"

type Grading = Literal["fresh", "shared"]
# Where ours grades, and where the peer does: like for like, then ours at its slowest against the
# peer at its fastest.
PLACEMENTS: tuple[tuple[Grading, Grading], ...] = (
    ("fresh", "fresh"),
    ("shared", "shared"),
    ("fresh", "shared"),
)

type MakeBackend = Callable[[TrialQueue], HarborBackend]


@dataclass(frozen=True)
class Subject:
    """One thing to measure: how its backend is made, and what it is asked."""

    title: str
    make: MakeBackend
    metadata: dict[str, Any] | None
    rollouts: int


@dataclass(frozen=True)
class Figures:
    """What one run of a subject gave."""

    per_minute: float
    cpu_sec: float
    phases: dict[str, float]


def template(title: str, rollouts: int, grading: Grading, peer: bool, task: Path) -> Subject:
    """The no-op workflow and grader in the template task."""
    import noop

    def make(queue: TrialQueue) -> HarborBackend:
        return HarborBackend(
            orchestrator=queue,
            tasks_dir=task,
            agent=noop.NoopWorkflow,
            grader=noop.NoopGrader,
            grader_sandbox=grading,
            environment_config=_harbors_own() if peer else None,
        )

    return Subject(title, make, None, rollouts)


def dataset(title: str, rollouts: int, peer: bool) -> Subject:
    """One dataset task, solved by its reference solution and graded by its own tests."""

    def make(queue: TrialQueue) -> HarborBackend:
        return HarborBackend(
            orchestrator=queue,
            tasks_dir=ROOT / "tasks" / "dataset",
            task_mode="dataset",
            agent="oracle",
            environment_config=_harbors_own() if peer else None,
        )

    return Subject(title, make, {"harbor_task_id": ORACLE_TASK}, rollouts)


async def measure(subject: Subject, n_concurrent: int, phases: tuple[str, ...] = PHASES) -> Figures:
    """Warm a backend up with one rollout, then time the rest."""
    backend = subject.make(TrialQueue(n_concurrent=n_concurrent))
    try:
        await _rollout(backend, subject)
        cpu, began = busy_seconds(), time.perf_counter()
        outcomes = await asyncio.gather(
            *(_rollout(backend, subject) for _ in range(subject.rollouts))
        )
        elapsed = time.perf_counter() - began
        cpu = busy_seconds() - cpu
    finally:
        await backend.shutdown()
    timings = [outcome.result.extra_fields["timings_sec"] for outcome in outcomes]
    return Figures(
        per_minute=subject.rollouts / elapsed * 60,
        cpu_sec=cpu / subject.rollouts,
        phases={
            phase: statistics.median(timing.get(phase, 0.0) for timing in timings)
            for phase in phases
        },
    )


async def compare(ours: Subject, peer: Subject, n_concurrent: int, rounds: int) -> None:
    """Measure both in turn and print medians and ratios."""
    mine, theirs = [], []
    for _ in range(rounds):
        mine.append(await measure(ours, n_concurrent))
        theirs.append(await measure(peer, n_concurrent))
    for subject, figures in ((ours, mine), (peer, theirs)):
        rate = statistics.median(figure.per_minute for figure in figures)
        cpu = statistics.median(figure.cpu_sec for figure in figures)
        phases = "  ".join(
            f"{phase} {statistics.median(figure.phases[phase] for figure in figures):5.2f}"
            for phase in PHASES
        )
        print(f"  {subject.title:42} {rate:6.1f}/min  {cpu:5.2f} CPU s   {phases}")
    pairs = list(zip(mine, theirs, strict=True))
    rate_ratio = statistics.median(a.per_minute / b.per_minute for a, b in pairs)
    cpu_ratio = statistics.median(b.cpu_sec / a.cpu_sec for a, b in pairs)
    print(
        f"  ratio: {rate_ratio:.1f} times the rollouts per minute, 1/{cpu_ratio:.1f} of the CPU\n"
    )


async def run(rollouts: int, peer_rollouts: int, rounds: int) -> None:
    """Run every comparison."""
    with tempfile.TemporaryDirectory(prefix="osmosis-benchmark-") as scratch:
        task = ROOT / "tasks" / "multiply"
        # Harbor's own environment cannot deny the network without pulling an image.
        public = _with_network(task, Path(scratch))
        for n_concurrent in (2, 4):
            print(f"template mode, no-op workflow and grader, {n_concurrent} at once")
            for grading, peers in PLACEMENTS:
                await compare(
                    template(f"ours, grader {grading}", rollouts, grading, False, task),
                    template(
                        f"Harbor's Docker, grader {peers}", peer_rollouts, peers, True, public
                    ),
                    n_concurrent,
                    rounds,
                )
            print(f"dataset mode, oracle on {ORACLE_TASK}, {n_concurrent} at once")
            await compare(
                dataset("ours", rollouts, False),
                dataset("Harbor's Docker", peer_rollouts, True),
                n_concurrent,
                rounds,
            )


async def _rollout(backend: HarborBackend, subject: Subject) -> ExecutionOutcome:
    outcome = await backend.execute(
        ExecutionRequest(
            id=f"benchmark-{uuid.uuid4().hex}",
            prompt=[{"role": "user", "content": "Do nothing."}],
            label="done",
            metadata=subject.metadata,
        )
    )
    result = outcome.result
    if result.status != "success" or result.sample is None or result.sample.reward != 1.0:
        raise RuntimeError(f"{subject.title}: a rollout failed: {result.err_message}")
    return outcome


def _harbors_own() -> EnvironmentConfig:
    return EnvironmentConfig(type=EnvironmentType.DOCKER)


def _with_network(task: Path, scratch: Path) -> Path:
    import shutil

    copy = scratch / task.name
    shutil.copytree(task, copy)
    with (copy / "task.toml").open("a") as file:
        file.write('\n[environment]\nnetwork_mode = "public"\n')
    return copy


def main() -> None:
    """Parse arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rollouts", type=int, default=40, help="per run of ours")
    parser.add_argument("--peer-rollouts", type=int, default=8, help="per run of the peer")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each, in turn")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    sys.path.insert(0, str(ROOT / "benchmarks" / "projects" / "noop"))
    print("\n".join(describe("harbor", "osmosis-ai", "pydantic")), end="\n\n")
    with tempfile.TemporaryDirectory(prefix="osmosis-benchmark-") as root:
        os.environ[ARTIFACT_ROOT_ENV] = root
        asyncio.run(run(args.rollouts, args.peer_rollouts, args.rounds))


if __name__ == "__main__":
    main()
