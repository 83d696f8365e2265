"""Several backends on one queue."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from harbor.trial.queue import TrialQueue

from harbor_backend import HarborBackend
from osmosis_ai.rollout import ExecutionRequest
from tests.harbor_backend.rollouts.acting import said, shell
from tests.harbor_backend.rollouts.conftest import DATASET

pytestmark = pytest.mark.docker


async def test_two_backends_share_a_queue(artifact_root: Path, project: Path) -> None:
    queue = TrialQueue(n_concurrent=2)
    arguments: dict[str, Any] = {
        "orchestrator": queue,
        "tasks_dir": DATASET.parent / "multiply",
        "agent": "adversary:Act",
    }
    first, second = HarborBackend(**arguments), HarborBackend(**arguments)
    seen: list[str] = []

    async def note(result: Any) -> None:
        seen.append(result.sample.messages[-1]["content"])

    requests = [
        ExecutionRequest(id="same-id", grade=False, **shell(f"echo {name}")) for name in "ab"
    ]
    await asyncio.gather(first.execute(requests[0], note), second.execute(requests[1], note))
    await first.shutdown()
    assert said(await second.execute(requests[1])) == "b\n"
    await second.shutdown()
    assert sorted(seen) == ["a\n", "b\n"]
