"""Trials in sandboxes of the double: where images come from, what runs, how a model is reached."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from harbor_backend.places.instance import instance_id
from harbor_backend.places.skypilot.names import instance_of, rollout_of, rollout_part
from osmosis_ai.rollout import (
    ExecutionRequest,
    RolloutContext,
    RolloutErrorCategory,
    RolloutStatus,
)
from osmosis_ai.rollout.run import run_rollout
from osmosis_ai.telemetry import Telemetry
from sandbox_images import BASE_IMAGE
from tests.harbor_backend.places.skypilot.with_sky.conftest import (
    TASKS,
    WHOSE,
    MakeBackend,
    own_sandboxes,
    run,
    timings,
)
from tests.harbor_backend.places.skypilot.with_sky.servers import free_port
from tests.harbor_backend.rollouts.conftest import SECRET, MakeTask, until

pytestmark = [pytest.mark.docker, pytest.mark.timeout(600)]

of_both = pytest.mark.parametrize("whose", WHOSE)
PUBLIC = '[environment]\nnetwork_mode = "public"\n'
WITH_IMAGE = f'[environment]\ndocker_image = "{BASE_IMAGE}"\n'


async def test_a_registry_build_bakes_the_runtime_as_one_layer(
    make_backend: MakeBackend, engine: Any, registry_host: str
) -> None:
    backend = make_backend(agent="adversary:Answer", grader="adversary:LookAround")
    outcome = await run(backend)
    assert outcome.result.status is RolloutStatus.SUCCESS, outcome
    assert outcome.workflow.extra_fields["environment"] == "skypilot"
    assert "runtime_upload" not in timings(outcome)
    assert {"image", "sandbox_create", "sandbox_terminate"} <= timings(outcome).keys()
    images = [
        (image, tag)
        for image in engine.images.list()
        for tag in image.tags
        if tag.startswith(f"{registry_host}/multiply:")
    ]
    assert images
    of_tasks = [image.attrs["RootFS"]["Layers"] for image in engine.images.list("osmosis-env")]
    async with httpx.AsyncClient() as client:
        for image, reference in images:
            assert image.attrs["RootFS"]["Layers"][:-1] in of_tasks, "not a task and one layer"
            repository, tag = reference.removeprefix(f"{registry_host}/").split(":")
            url = f"http://{registry_host}/v2/{repository}/manifests/{tag}"
            assert (await client.get(url)).status_code == 200
    again = await run(backend, "r-2")
    assert timings(again)["image"] < 0.5


@of_both
async def test_a_prebuilt_image_gets_the_runtime_once_as_one_archive(
    whose: str, make_backend: MakeBackend, make_task: MakeTask
) -> None:
    task = make_task(toml=WITH_IMAGE, environment__note="from the task's environment")
    (task / "environment" / "Dockerfile").unlink()
    backend = make_backend(
        whose=whose,
        sky={}, tasks_dir=task, agent="adversary:Answer", grader="adversary:LookAround",
        grader_sandbox="shared",
    )  # fmt: skip
    outcome = await run(backend)
    assert outcome.result.status is RolloutStatus.SUCCESS, outcome
    assert timings(outcome)["runtime_upload"] > 0
    assert "image" not in timings(outcome)


async def test_a_pool_is_made_used_resized_and_deleted(make_backend: MakeBackend) -> None:
    from sky_sandbox_double import pools, sdk

    from harbor_backend.places.skypilot.pools import delete_pool

    task = TASKS / "dataset"
    pool: dict[str, Any] = {"pool": "warm", "ensure_pool": {"image": BASE_IMAGE, "replicas": 1}}
    backend = make_backend(sky=pool, tasks_dir=task, task_mode="dataset", agent="oracle")
    await backend.prewarm(task_ids=["log-report"])
    assert len(pools.get("warm").idle) == 1
    pool["ensure_pool"]["replicas"] = 2
    await make_backend(sky=pool, tasks_dir=task, task_mode="dataset", agent="oracle").prewarm(
        task_ids=["log-report"]
    )
    (first, second) = pools.get("warm").idle
    outcome = await run(backend, metadata={"harbor_task_id": "log-report"})
    assert outcome.workflow.status is RolloutStatus.SUCCESS, outcome.workflow
    assert pools.get("warm").idle == [first]
    assert second not in {sandbox.name for sandbox in sdk.ls()}
    await delete_pool(sdk, "warm")
    with pytest.raises(sdk.SandboxError):
        pools.get("warm")


@of_both
async def test_a_pools_sandbox_gets_the_runtime_and_the_tasks_directory(
    whose: str, make_backend: MakeBackend, make_task: MakeTask
) -> None:
    from sky_sandbox_double import sdk

    from harbor_backend.places.skypilot.pools import delete_pool

    pool = {"pool": "graded", "ensure_pool": {"image": BASE_IMAGE, "replicas": 2}}
    # Harbor's own runs commands in the Dockerfile's directory, and does not make it.
    workdir = "/not/in/the/pool" if whose == "ours" else "/tmp"
    task = make_task(toml=PUBLIC, dockerfile=f"FROM {BASE_IMAGE}\nWORKDIR {workdir}\n")
    backend = make_backend(
        whose=whose,
        sky=pool,
        tasks_dir=task,
        agent="adversary:Answer",
        grader="adversary:LookAround",
    )
    await backend.prewarm()
    outcome = await run(backend)
    assert outcome.result.status is RolloutStatus.SUCCESS, outcome
    assert timings(outcome)["runtime_upload"] > 0
    await delete_pool(sdk, "graded")


@of_both
@pytest.mark.parametrize("name", ["close-pairs", "stack-machine", "ledger", "content-store"])
async def test_dataset_tasks_on_our_environment_and_on_harbors(
    whose: str, name: str, make_backend: MakeBackend
) -> None:
    """Harbor's own runs unmodified: the double is as it expects the SDK to be."""
    if whose == "harbors" and name == "content-store":
        name = "log-report"  # Harbor's own cannot run an image whose user is not root
    backend = make_backend(
        whose=whose, tasks_dir=TASKS / "dataset", task_mode="dataset", agent="oracle"
    )
    outcome = await run(backend, f"oracle-{name}", metadata={"harbor_task_id": name})
    assert outcome.result.sample is not None, outcome
    assert outcome.result.sample.reward == 1.0


async def test_harbors_own_refuses_what_would_run_as_another_user_than_the_images(
    make_backend: MakeBackend,
) -> None:
    tasks = TASKS / "dataset"
    arguments = {"tasks_dir": tasks, "task_mode": "dataset", "agent": "adversary:Answer"}
    backend = make_backend(whose="harbors", **arguments)
    outcome = await run(backend, prompt=[], metadata={"harbor_task_id": "content-store"})
    assert outcome.workflow.err_category is RolloutErrorCategory.VALIDATION_ERROR, outcome
    assert "Harbor's own environment runs commands as root" in str(outcome.workflow.err_message)


@of_both
async def test_the_model_is_reached_over_the_network_with_a_token_of_the_rollout(
    whose: str,
    make_backend: MakeBackend,
    make_task: MakeTask,
    policy: tuple[str, list[str]],
    base_url: str,
    artifact_root: Path,
) -> None:
    url, keys = policy
    backend = make_backend(
        whose=whose,
        tasks_dir=make_task(toml=PUBLIC),
        agent="adversary:CallModel",
        agent_base_url=base_url,
    )
    with RolloutContext(url, SECRET, "r-1"):
        outcome = await run(backend)
    assert outcome.workflow.sample is not None, outcome.workflow
    report = json.loads(outcome.workflow.sample.messages[-1]["content"])
    assert report["said"] == "from the policy"
    assert report["url"] == f"{base_url}/rollouts/r-1/v1"
    assert keys == [f"Bearer {SECRET}"]
    assert report["key"] not in {SECRET, None, ""}
    assert outcome.workflow.extra_fields["model_calls"]["calls"] == 1
    kept = [path for path in artifact_root.rglob("*") if path.is_file()]
    holding = {path.name for path in kept if report["key"].encode() in path.read_bytes()}
    assert holding <= {"container_result.json", "trajectory.json"}, "only the workflow's own report"
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {report['key']}"}) as client:
        answer = await client.get(f"{report['url']}/ping")
    assert answer.status_code == 410, "the token outlived its rollout"


async def test_a_call_from_a_sandbox_is_recorded_once(
    make_backend: MakeBackend, make_task: MakeTask, policy: tuple[str, list[str]], base_url: str
) -> None:
    """As the server and the CLI run it: on the backend's own gateway, with no other in between."""
    backend = make_backend(
        tasks_dir=make_task(toml=PUBLIC), agent="adversary:CallModel", agent_base_url=base_url
    )
    request = ExecutionRequest(id="r-1", prompt=[{"role": "user", "content": "hello"}], grade=False)
    telemetry = Telemetry()
    with telemetry.rollout("r-1"):
        finished = await run_rollout(backend, request, model=policy[0], api_key=SECRET)
    assert finished.outcome.workflow.sample is not None, finished.outcome.workflow
    report = json.loads(finished.outcome.workflow.sample.messages[-1]["content"])
    assert report["url"] == f"{base_url}/rollouts/r-1/v1"
    assert finished.calls is not None
    assert len(finished.calls) == 1
    assert finished.outcome.workflow.extra_fields["model_calls"]["calls"] == 1
    lines = telemetry.prometheus().decode().splitlines()
    counted = [line for line in lines if line.startswith("osmosis_gateway_calls_total{")]
    assert [line.rpartition(" ")[2] for line in counted] == ["1.0"]
    assert policy[1] == [f"Bearer {SECRET}"]


@of_both
async def test_a_grader_asks_its_judge_over_the_network(
    whose: str, make_backend: MakeBackend, make_task: MakeTask, base_url: str
) -> None:
    backend = make_backend(
        whose=whose,
        tasks_dir=make_task(toml=PUBLIC), agent="adversary:Answer", grader="adversary:AskJudge",
        judge="embedded/echo", agent_base_url=base_url,
    )  # fmt: skip
    outcome = await run(backend)
    assert outcome.grader is not None, outcome.workflow
    assert outcome.grader.sample is not None, outcome.grader
    assert outcome.grader.sample.reward == 1.0
    assert outcome.grader.extra_fields["judge_calls"]["calls"] == 1


@of_both
@pytest.mark.parametrize(
    ("url", "hop"), [("http://{bridge}:9", "connect"), ("http://engine.internal:9", "name")]
)
async def test_a_way_to_the_model_that_does_not_work_is_told_by_its_hop(
    whose: str,
    make_backend: MakeBackend,
    make_task: MakeTask,
    policy: tuple[str, list[str]],
    bridge: str,
    url: str,
    hop: str,
) -> None:
    backend = make_backend(
        whose=whose,
        tasks_dir=make_task(toml=PUBLIC), agent="adversary:CallModel",
        agent_base_url=url.format(bridge=bridge), agent_bind=f"127.0.0.1:{free_port()}",
    )  # fmt: skip
    with RolloutContext(policy[0], SECRET, "r-1"):
        outcome = await run(backend)
    assert outcome.workflow.status is RolloutStatus.FAILURE
    assert f"at the hop '{hop}'" in str(outcome.workflow.err_message)
    # Harbor's own knows nothing of a model: the agent looks before it begins.
    phase = "environment_setup" if whose == "ours" else "agent_setup"
    assert outcome.workflow.extra_fields["phase"] == phase
    assert outcome.workflow.extra_fields["category"] == "infrastructure_error"
    assert policy[1] == []


async def test_the_name_tells_engine_and_rollout_and_the_life_is_the_deadlines(
    make_backend: MakeBackend, engine: Any
) -> None:
    from sky_sandbox_double import containers

    backend = make_backend(agent="adversary:Wait")
    running = asyncio.create_task(run(backend, "Named Rollout 1", agent_timeout_sec=40))
    await until(own_sandboxes, 120)
    (name,) = own_sandboxes()
    assert instance_of(name) == instance_id()
    assert rollout_of(name) == rollout_part("Named Rollout 1")
    life = int(containers.find(name).attrs["Config"]["Entrypoint"][2].split("sleep ")[1].split()[0])
    build, grading = 600, 3600
    assert life == build + 40 + grading + 10 + 600
    await backend.cancel_rollouts(all=True)
    await running
    await until(lambda: own_sandboxes() == [])
