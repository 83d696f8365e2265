"""The reaper takes what a killed engine left in the cluster, and nothing else. Real processes."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from harbor_backend.places.instance import instance_id
from harbor_backend.places.skypilot.names import instance_of, sandbox_name
from harbor_backend.places.skypilot.reaper import reap_sandboxes
from sandbox_images import BASE_IMAGE
from tests.harbor_backend.places.skypilot.with_sky.conftest import TASKS, WHOSE, MakeBackend, run
from tests.harbor_backend.rollouts.conftest import PROJECT, until

pytestmark = [pytest.mark.docker, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[5]
STRANGERS = ("somebody-elses", "osm-but-not-ours")


@pytest.mark.parametrize("whose", WHOSE)
async def test_a_killed_engines_sandbox_goes_and_the_others_stay(
    whose: str, artifact_root: Path, registry_host: str, make_backend: MakeBackend
) -> None:
    from sky_sandbox_double import sdk

    paths = os.pathsep.join([str(ROOT), str(PROJECT)])
    environment = {**WHOSE[whose], "kwargs": {"registry": registry_host}}
    engine = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.harbor_backend.places.skypilot.with_sky.engine_process",
        str(TASKS / "multiply"), json.dumps(environment),
        env={**os.environ, "PYTHONPATH": paths}, stdout=asyncio.subprocess.PIPE, cwd=ROOT,
    )  # fmt: skip
    assert engine.stdout is not None
    instance = (await engine.stdout.readline()).decode().strip()

    def left() -> list[str]:
        return [box.name for box in sdk.ls() if instance_of(box.name) == instance]

    living = sandbox_name(instance_id(), "mine")
    elsewhere = sandbox_name("0123456789ab-01234567", "another-machines")
    kept = [living, elsewhere, *STRANGERS]
    try:
        await until(left, 180)
        for name in kept:
            await sdk.create.aio(name=name, image=BASE_IMAGE, timeout=300)
        assert await reap_sandboxes(sdk) == []
        engine.send_signal(signal.SIGKILL)
        await engine.wait()
        (dead,) = left()
        # A later engine of this machine reaps by itself, at its first rollout.
        await run(make_backend(agent="adversary:Answer"))
        await until(lambda: left() == [])
        assert {box.name for box in sdk.ls()} >= set(kept)
        assert await reap_sandboxes(sdk) == []
        assert dead not in kept
    finally:
        if engine.returncode is None:
            engine.kill()
            await engine.wait()
        for name in [*kept, *left()]:
            await sdk.Sandbox(name).terminate.aio(wait=True)
