"""Rollouts on a host over SSH: a real sshd, a real engine, real containers."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from harbor_backend.places import labels
from harbor_backend.places.instance import instance_id
from osmosis_ai.rollout import ExecutionOutcome, ExecutionRequest, RolloutContext
from osmosis_ai.rollout.types.status import RolloutErrorCategory, RolloutStatus
from tests.harbor_backend.conftest import own_containers
from tests.harbor_backend.places.ssh.conftest import (
    DOCKER_SOCKET,
    Arguments,
    EngineProxy,
    MakeBackend,
    MakeHost,
)
from tests.harbor_backend.rollouts.conftest import DATASET, SECRET, run, until

pytestmark = pytest.mark.docker


def _report(outcome: ExecutionOutcome) -> dict[str, Any]:
    assert outcome.workflow.sample is not None, outcome.workflow
    found: dict[str, Any] = json.loads(outcome.workflow.sample.messages[-1]["content"])
    return found


def _mine(engine: Any) -> list[Any]:
    mine = {"label": f"{labels.INSTANCE}={instance_id()}"}
    return list(engine.containers.list(all=True, filters=mine, ignore_removed=True))


async def _dataset(backend: Any, rollout_id: str, task: str = "free-slots") -> ExecutionOutcome:
    outcome: ExecutionOutcome = await backend.execute(
        ExecutionRequest(id=rollout_id, metadata={"harbor_task_id": task})
    )
    return outcome


async def test_the_model_is_reached_without_network_and_key(
    make_host: MakeHost,
    arguments: Arguments,
    make_backend: MakeBackend,
    policy: tuple[str, list[str]],
    artifact_root: Path,
    engine: Any,
) -> None:
    """Through the gateway's socket, which comes back over the same connection."""
    url, keys = policy
    kwargs = arguments(make_host())
    backend = make_backend(kwargs, agent="adversary:CallModel", grader="adversary:LookAround")
    with RolloutContext(url, SECRET, "r-1"):
        outcome = await run(backend)
    report = _report(outcome)
    assert keys == [f"Bearer {SECRET}"]
    assert report["said"] == "from the policy"
    assert report["interfaces"] == ["lo"]
    assert report["key"] != SECRET
    assert outcome.result.status is RolloutStatus.SUCCESS
    assert outcome.result.extra_fields["environment"] == "sky-docker"
    assert outcome.grader is not None
    assert outcome.grader.sample is not None
    assert outcome.grader.sample.extra_fields["left_behind"] is False
    for path in artifact_root.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
    assert _mine(engine) == []


async def test_the_runtime_is_copied_once_and_mounted_from_there(
    make_host: MakeHost,
    arguments: Arguments,
    make_backend: MakeBackend,
    remote_dir: Path,
    engine: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nothing of this machine is mounted: every source is a path of the host's."""
    caplog.set_level(logging.INFO, logger="harbor_backend.places.ssh.link")
    kwargs = arguments(make_host())
    backend = make_backend(kwargs, agent="oracle", tasks_dir=DATASET, task_mode="dataset")
    sources: set[str] = set()

    async def look() -> None:
        while True:
            for container in _mine(engine):
                sources.update(mount["Source"] for mount in container.attrs["Mounts"])
            await asyncio.sleep(0.05)

    looking = asyncio.create_task(look())
    outcomes = [await _dataset(backend, f"r-{number}") for number in range(2)]
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)
    assert [outcome.result.sample.reward for outcome in outcomes if outcome.result.sample] == [1, 1]
    copied = [record for record in caplog.records if "was copied to host" in record.message]
    assert len(copied) == 1
    runtimes = list((remote_dir / "runtimes").iterdir())
    assert len(runtimes) == 1
    assert str(runtimes[0]) in sources
    rest = sources - {str(runtimes[0])}
    assert rest
    assert all("/r-" in source for source in rest), rest
    assert not any(Path(source).exists() for source in rest)

    again = make_backend(kwargs, agent="oracle", tasks_dir=DATASET, task_mode="dataset")
    await backend.shutdown()
    assert (await _dataset(again, "r-3")).result.status is RolloutStatus.SUCCESS
    assert len([r for r in caplog.records if "was copied to host" in r.message]) == 1


async def test_a_sandbox_without_a_supervisor(
    make_host: MakeHost, arguments: Arguments, make_backend: MakeBackend
) -> None:
    """Commands and files through the tunnelled engine, as for images that cannot run one."""
    kwargs = arguments(make_host(), supervise=False)
    backend = make_backend(kwargs, agent="oracle", tasks_dir=DATASET, task_mode="dataset")
    outcome = await _dataset(backend, "r-1")
    assert outcome.result.sample is not None, outcome.result.err_message
    assert outcome.result.sample.reward == 1.0


async def test_slots_bound_what_runs_on_each_host(
    make_host: MakeHost, arguments: Arguments, make_backend: MakeBackend
) -> None:
    """Two hosts of one slot each run two trials at a time, whatever the queue allows."""
    first, second = make_host("first"), make_host("second")
    kwargs = arguments(first, second, slots=1)
    backend = make_backend(kwargs, n_concurrent=6, agent="oracle", tasks_dir=DATASET,
                           task_mode="dataset")  # fmt: skip
    most: dict[str, int] = {}

    async def look() -> None:
        while True:
            for host in backend.health().get("hosts", []):
                most[host["host"]] = max(most.get(host["host"], 0), host["used"])
            await asyncio.sleep(0.01)

    looking = asyncio.create_task(look())
    outcomes = await asyncio.gather(*(_dataset(backend, f"r-{n}") for n in range(5)))
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)
    assert [outcome.result.status for outcome in outcomes] == [RolloutStatus.SUCCESS] * 5
    assert most == {first.alias: 1, second.alias: 1}
    assert [host["used"] for host in backend.health()["hosts"]] == [0, 0]


async def test_a_rollout_on_a_lost_host_is_an_infrastructure_failure_and_runs_again(
    make_host: MakeHost, arguments: Arguments, make_backend: MakeBackend, engine: Any
) -> None:
    """The other host goes on; the lost one comes back, and what was left on it is removed."""
    first, second = make_host("first"), make_host("second")
    backend = make_backend(arguments(first, second, slots=1), agent="adversary:Wait")
    by_alias = {first.alias: first, second.alias: second}
    waiting = [asyncio.create_task(run(backend, f"r-{number}")) for number in range(2)]
    await until(lambda: len([c for c in _mine(engine) if c.status == "running"]) == 2)
    await until(lambda: sum(host["used"] for host in backend.health()["hosts"]) == 2)
    await asyncio.sleep(1)  # into the agent's phase
    first.die()
    done, rest = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED, timeout=60)
    assert len(done) == len(rest) == 1
    outcome = done.pop().result()
    assert outcome.result.status is RolloutStatus.FAILURE
    assert outcome.result.err_category is RolloutErrorCategory.INFRASTRUCTURE_ERROR
    assert f"Host {first.alias} was lost" in str(outcome.result.err_message)
    assert "may be run again" in str(outcome.result.err_message)
    assert outcome.result.extra_fields["harbor_exception_type"] == "HostLostError"
    assert outcome.result.extra_fields["phase"] == "agent"
    states = {host["host"]: host["state"] for host in backend.health()["hosts"]}
    assert states == {first.alias: "lost", second.alias: "ready"}

    await backend.cancel_rollouts(all=True)
    assert (await rest.pop()).result.status is RolloutStatus.CANCELLED
    by_alias[first.alias].start()
    await until(lambda: all(h["state"] == "ready" for h in backend.health()["hosts"]))
    assert own_containers(engine) == []


async def test_a_host_whose_engine_does_not_answer_drains(
    make_host: MakeHost,
    arguments: Arguments,
    make_backend: MakeBackend,
    engine_proxy: EngineProxy,
) -> None:
    """It gets no trial; one that waits runs as soon as the engine answers again."""
    kwargs = arguments(make_host(), docker_socket=str(engine_proxy.path))
    backend = make_backend(kwargs, agent="oracle", tasks_dir=DATASET, task_mode="dataset")
    await backend.check_reachable()

    def state() -> str:
        return str(backend.health()["hosts"][0]["state"])

    await until(lambda: state() == "ready")
    await engine_proxy.stop()
    await until(lambda: state() == "draining")
    assert "does not answer" in backend.health()["hosts"][0]["reason"]
    waiting = asyncio.create_task(_dataset(backend, "r-1"))
    await asyncio.sleep(1)
    assert not waiting.done()
    assert backend.health()["hosts"][0]["used"] == 0
    await engine_proxy.start()
    assert (await waiting).result.status is RolloutStatus.SUCCESS


async def test_sandboxes_of_a_dead_engine_are_reaped_there(
    make_host: MakeHost, arguments: Arguments, make_backend: MakeBackend, engine: Any
) -> None:
    """When a host is connected, by the labels on its containers."""
    dead = f"{instance_id().split('-')[0]}-0000000000000000"
    container = engine.containers.create(
        "python:3.12-slim",
        "sleep 1",
        name=f"{labels.PREFIX}-left-by-a-dead-engine",
        labels={labels.SANDBOX: "docker", labels.INSTANCE: dead, labels.ROLLOUT: "r-0"},
    )
    backend = make_backend(arguments(make_host()), agent="oracle")
    await backend.check_reachable()
    assert container.id not in [c.id for c in engine.containers.list(all=True)]


async def test_no_host_can_be_reached(
    make_host: MakeHost, arguments: Arguments, make_backend: MakeBackend
) -> None:
    host = make_host()
    host.die()
    backend = make_backend(arguments(host), agent="adversary:Answer")
    outcome = await run(backend)
    assert outcome.result.err_category is RolloutErrorCategory.INFRASTRUCTURE_ERROR
    assert outcome.result.extra_fields["phase"] == "environment_setup"
    assert "No host can run a trial now" in str(outcome.result.err_message)
    assert "Connection refused" in str(outcome.result.err_message)


async def test_a_host_that_forwards_no_sockets_is_named(
    make_host: MakeHost, arguments: Arguments, make_backend: MakeBackend
) -> None:
    backend = make_backend(
        arguments(make_host("shut", "AllowStreamLocalForwarding local")), agent="adversary:Answer"
    )
    outcome = await run(backend)
    assert outcome.result.err_category is RolloutErrorCategory.INFRASTRUCTURE_ERROR
    assert "AllowStreamLocalForwarding yes" in str(outcome.result.err_message)


def test_the_engine_of_these_tests_is_a_socket() -> None:
    """What the hosts are told to forward."""
    assert Path(DOCKER_SOCKET).is_socket()
