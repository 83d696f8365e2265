"""Harbor's own agents in sandboxes of the double: one that calls its model from inside, one not."""

import shutil
from pathlib import Path

import pytest

from osmosis_ai.gateway import Gateway
from osmosis_ai.rollout import RolloutContext
from tests.harbor_backend.native.test_end_to_end import REAL_KEY, TASKS, commands
from tests.harbor_backend.places.skypilot.with_sky.conftest import WHOSE, MakeBackend, run

# Building an image with an agent in it takes minutes where nothing is cached.
pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]


@pytest.mark.parametrize("whose", WHOSE)
@pytest.mark.parametrize("agent", ["mini-swe-agent", "terminus-2"])
async def test_an_agent_solves_its_task(
    agent: str, whose: str, make_backend: MakeBackend, base_url: str, tmp_path: Path
) -> None:
    """The caller's gateway is on loopback: from a sandbox it is reached through the backend's."""
    inside = agent == "mini-swe-agent"
    task = tmp_path / "tasks" / agent
    shutil.copytree(TASKS / agent, task)
    settings = (task / "task.toml").read_text()
    (task / "task.toml").write_text(
        settings.replace('network_mode = "no-network"', 'network_mode = "public"')
        if inside
        else settings
    )
    backend = make_backend(
        whose=whose,
        tasks_dir=task.parent,
        task_mode="dataset",
        agent=agent,
        agent_base_url=base_url if inside else None,
    )
    async with Gateway() as gateway, gateway.open("native", "embedded/shell", REAL_KEY) as endpoint:
        with RolloutContext(chat_completions_url=endpoint.url, api_key=endpoint.token):
            outcome = await run(
                backend, "native", prompt=[], metadata={"harbor_task_id": agent}, label="blue"
            )
        calls = endpoint.summary().calls
    assert outcome.result.err_message is None, outcome.workflow
    assert outcome.result.sample is not None
    assert outcome.result.sample.reward == 1.0
    assert commands(outcome)[0].startswith("printf 'blue")
    assert outcome.workflow.extra_fields["model_calls"]["calls"] == calls > 0
    assert REAL_KEY not in outcome.model_dump_json()
