"""One graded trial on a real endpoint.

    sky api login -e <endpoint>
    OSMOSIS_SKYPILOT_LIVE='{"pool": "default"}' \\
        python -m pytest tests/harbor_backend/places/skypilot/live

The variable holds ``environment_config.kwargs``: a pool, or ``{}`` for the image python:3.12-slim.
"""

import json
import os
from pathlib import Path

import pytest
from harbor.models.trial.config import EnvironmentConfig
from harbor.trial.queue import TrialQueue

from harbor_backend import HarborBackend
from harbor_backend.places.instance import instance_id
from harbor_backend.places.skypilot.listing import list_sandboxes
from harbor_backend.places.skypilot.names import instance_of
from harbor_backend.places.skypilot.sdk import load_sdk
from osmosis_ai.rollout import ExecutionRequest, RolloutStatus
from osmosis_ai.rollout.artifacts import ARTIFACT_ROOT_ENV
from tests.harbor_backend.places.skypilot.live.conftest import LIVE
from tests.harbor_backend.rollouts.conftest import PROJECT


@pytest.mark.timeout(1800)
async def test_one_graded_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ARTIFACT_ROOT_ENV, str(tmp_path / "rollouts"))
    monkeypatch.syspath_prepend(str(PROJECT))
    task = tmp_path / "live"
    (task / "environment").mkdir(parents=True)
    (task / "task.toml").write_text(
        'schema_version = "1.4"\n[environment]\nnetwork_mode = "public"\n'
        'docker_image = "python:3.12-slim"\n'
    )
    backend = HarborBackend(
        orchestrator=TrialQueue(n_concurrent=1),
        tasks_dir=task,
        agent="adversary:Answer",
        grader="adversary:LookAround",
        environment_config=EnvironmentConfig(type="skypilot", kwargs=json.loads(os.environ[LIVE])),
    )
    try:
        prompt = [{"role": "user", "content": "hello"}]
        outcome = await backend.execute(ExecutionRequest(id="live", prompt=prompt, label="4"))
    finally:
        await backend.shutdown()
    assert outcome.result.status is RolloutStatus.SUCCESS, outcome
    print(outcome.workflow.extra_fields["timings_sec"])
    left = [box.name for box in await list_sandboxes(load_sdk())]
    assert [name for name in left if instance_of(name) == instance_id()] == []
