"""Seconds per trial and where they go: on the double, against local Docker.

    python -m benchmarks.skypilot.trials [--rollouts N] [--rounds K]

The same no-op workflow and grader, two at once: on our own Docker environment, and on the SDK's
double with the runtime baked into a registry's image, uploaded to a prebuilt image, and uploaded
to a warm pool's. The double's sandboxes are containers of this machine: what it adds is what our
side does over the SDK, and nothing of a cluster's own times is in it. Needs the environment that
scripts/test-skypilot.sh makes.
"""

import argparse
import asyncio
import contextlib
import logging
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from harbor.models.trial.config import EnvironmentConfig
from harbor.trial.queue import TrialQueue

from benchmarks.machine import describe
from benchmarks.skypilot.setting import TEMPLATE, setting
from benchmarks.throughput import Subject, measure
from harbor_backend import HarborBackend
from osmosis_ai.rollout.artifacts import ARTIFACT_ROOT_ENV
from sandbox_images import BASE_IMAGE

AT_ONCE = 2
PHASES = (
    "environment_setup", "agent", "verifier", "total",
    "sandbox_create", "runtime_upload", "sandbox_terminate",
)  # fmt: skip


def subjects(registry: str, scratch: Path, rollouts: int) -> list[Subject]:
    """What is measured."""
    prebuilt = _task(scratch / "prebuilt", f'docker_image = "{BASE_IMAGE}"\n', dockerfile=False)
    pooled = _task(scratch / "pooled", 'network_mode = "public"\n')
    pool = {"pool": "bench", "ensure_pool": {"image": BASE_IMAGE, "replicas": rollouts}}
    return [
        _subject("local Docker", None, TEMPLATE, rollouts),
        _subject("double: registry, runtime baked", {"registry": registry}, TEMPLATE, rollouts),
        _subject("double: prebuilt image, uploaded", {}, prebuilt, rollouts),
        _subject("double: warm pool, uploaded", pool, pooled, rollouts),
    ]


def _subject(title: str, sky: dict[str, Any] | None, task: Path, rollouts: int) -> Subject:
    import noop

    def make(queue: TrialQueue) -> HarborBackend:
        return HarborBackend(
            orchestrator=queue,
            tasks_dir=task,
            agent=noop.NoopWorkflow,
            grader=noop.NoopGrader,
            environment_config=(
                None if sky is None else EnvironmentConfig(type="skypilot", kwargs=sky)
            ),
        )

    return Subject(title, make, None, rollouts)


def _task(target: Path, environment: str, *, dockerfile: bool = True) -> Path:
    shutil.copytree(TEMPLATE, target)
    if not dockerfile:
        (target / "environment" / "Dockerfile").unlink()
    with (target / "task.toml").open("a") as file:
        file.write(f"\n[environment]\n{environment}")
    return target


async def run(registry: str, scratch: Path, rollouts: int, rounds: int) -> None:
    """Measure all in turn, and print medians."""
    from sky_sandbox_double import pools

    chosen = subjects(registry, scratch, rollouts)
    found: dict[str, list[Any]] = {subject.title: [] for subject in chosen}
    try:
        for _ in range(rounds):
            for subject in chosen:
                if "pool" in subject.title:
                    warm = subject.make(TrialQueue(n_concurrent=AT_ONCE))
                    await warm.prewarm()
                    await warm.shutdown()
                found[subject.title].append(await measure(subject, AT_ONCE, PHASES))
    finally:
        with contextlib.suppress(pools.SandboxError):  # the first run failed before the pool's
            pools.delete("bench")
    print(f"{'':34}{'per min':>8}{'CPU s':>7}" + "".join(f"{phase[:12]:>14}" for phase in PHASES))
    for title, figures in found.items():
        rate = statistics.median(figure.per_minute for figure in figures)
        cpu = statistics.median(figure.cpu_sec for figure in figures)
        parts = "".join(
            f"{statistics.median(figure.phases[phase] for figure in figures):14.2f}"
            for phase in PHASES
        )
        print(f"{title:34}{rate:8.1f}{cpu:7.2f}{parts}")


def main() -> None:
    """Parse arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rollouts", type=int, default=20, help="per run")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each, in turn")
    args = parser.parse_args()
    logging.disable(logging.ERROR)
    print("\n".join(describe("harbor", "skypilot")), end="\n\n", flush=True)
    with (
        setting(ARTIFACT_ROOT_ENV) as registry,
        tempfile.TemporaryDirectory(prefix="osmosis-benchmark-") as scratch,
    ):
        asyncio.run(run(registry, Path(scratch), args.rollouts, args.rounds))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
