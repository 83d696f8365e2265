"""The model's key, and where it must not be."""

from pathlib import Path

import pytest

from osmosis_ai.rollout import RolloutContext
from tests.harbor_backend.rollouts.acting import said, shell
from tests.harbor_backend.rollouts.conftest import MakeBackend, run

pytestmark = pytest.mark.docker

SECRET = "sk-never-to-be-seen-5471"


async def test_no_key_is_in_what_harbor_writes(make_backend: MakeBackend, tmp_path: Path) -> None:
    trials = tmp_path / "trials"
    backend = make_backend(
        agent="adversary:Act", trials_dir=trials, cleanup_successful_trials=False
    )
    with RolloutContext("http://127.0.0.1:9/v1", SECRET, "r-1"):
        outcome = await run(backend, **shell("env; cat /proc/*/environ /proc/*/cmdline"))
    files = [path for path in trials.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []
    assert SECRET not in said(outcome)
