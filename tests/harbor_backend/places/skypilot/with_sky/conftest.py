"""Tests that need SkyPilot itself, with the double registered as its sandbox SDK.

SkyPilot does not resolve beside everything that the lock holds, so these run in
an environment of their own: ``scripts/test-skypilot.sh``.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from harbor.models.trial.config import EnvironmentConfig
from harbor.trial.queue import TrialQueue

from harbor_backend import HarborBackend
from harbor_backend.places.instance import instance_id
from harbor_backend.places.skypilot.names import instance_of, rollout_part
from harbor_backend.program.bundle import EntryPoints, build_bundle
from harbor_backend.program.runtime import Runtime, build_runtime
from osmosis_ai.rollout import ExecutionOutcome, ExecutionRequest
from tests.harbor_backend.places.skypilot.with_sky.servers import api_server, free_port, registry
from tests.harbor_backend.rollouts.conftest import PROJECT, make_task, policy, project

__all__ = ["make_task", "policy", "project"]

HAS_SKY = find_spec("sky") is not None and find_spec("sky_sandbox_double") is not None
ENDPOINT = "SKYPILOT_API_SERVER_ENDPOINT"
TASKS = Path(__file__).parents[5] / "tasks"

if not HAS_SKY:
    collect_ignore_glob = ["test_*.py"]


WHOSE: dict[str, dict[str, Any]] = {
    "ours": {"type": "skypilot"},
    "harbors": {"import_path": "harbor.environments.skypilot:SkypilotEnvironment"},
}
"""How a configuration names our environment, and Harbor's own, unmodified."""

type MakeBackend = Callable[..., HarborBackend]


def pytest_report_header() -> list[str]:
    """Say what is left out, and what runs it."""
    return [] if HAS_SKY else ["SkyPilot is not installed: scripts/test-skypilot.sh runs its tests"]


@pytest.fixture(autouse=True, scope="session")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An API server that answers, chosen as a user would; yields its address."""
    from sky.server import common

    folder = tmp_path_factory.mktemp("sky")
    with pytest.MonkeyPatch.context() as patch, api_server() as url:
        patch.setenv("SKYPILOT_DISABLE_USAGE_COLLECTION", "1")
        patch.setenv("SKYPILOT_API_COOKIE_FILE", str(folder / "cookies"))
        patch.setenv(ENDPOINT, url)
        common.get_server_url.cache_clear()
        yield url
    common.get_server_url.cache_clear()


@pytest.fixture(scope="session")
def registry_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A registry of this session; yields ``host:port``."""
    with registry(tmp_path_factory.mktemp("registry")) as host:
        yield host


@pytest.fixture(autouse=True)
def faultless() -> Iterator[None]:
    """No fault of one test reaches the next."""
    from sky_sandbox_double import faults

    faults.clear()
    yield
    faults.clear()


@pytest.fixture(autouse=True, scope="module")
def no_sandbox_left() -> Iterator[None]:
    """Fails a module whose tests leave a sandbox of this process."""
    yield
    assert own_sandboxes() == []


@pytest.fixture
def bridge(engine: Any) -> str:
    """The host's address as containers on the default network see it."""
    settings = engine.networks.get("bridge").attrs["IPAM"]["Config"][0]
    return str(settings.get("Gateway") or settings["Subnet"].rsplit(".", 1)[0] + ".1")


@pytest.fixture
def base_url(bridge: str) -> str:
    """An ``agent_base_url`` that sandboxes reach."""
    return f"http://{bridge}:{free_port('0.0.0.0')}"


class Unclosed(Runtime):
    """A runtime that outlives the backends that share it."""

    def close(self) -> None:
        """The fixture closes the original."""


@pytest.fixture(scope="session")
def shared_runtime() -> Iterator[Runtime]:
    """One runtime for all agents and graders of the project: each image of it takes a while."""
    bundle = build_bundle(PROJECT, entry_points=EntryPoints(agent="adversary:Answer"))
    with build_runtime(bundle) as built:
        yield Unclosed(built.path, built.key, built._entry)


@pytest.fixture
async def make_backend(
    anyio_backend: str,
    artifact_root: Path,
    project: Path,
    registry_host: str,
    shared_runtime: Runtime,
) -> AsyncIterator[MakeBackend]:
    """Makes backends on SkyPilot, with the registry by default; they are shut down afterwards."""
    made: list[HarborBackend] = []

    def make(
        n_concurrent: int = 4,
        sky: dict[str, Any] | None = None,
        whose: str = "ours",
        **arguments: Any,
    ) -> HarborBackend:
        arguments.setdefault("tasks_dir", TASKS / "multiply")
        kwargs = {"registry": registry_host} if sky is None else sky
        backend = HarborBackend(
            orchestrator=TrialQueue(n_concurrent=n_concurrent),
            environment_config=EnvironmentConfig(**WHOSE[whose], kwargs=kwargs),
            **arguments,
        )
        backend._program._runtime = shared_runtime
        made.append(backend)
        return backend

    yield make
    for backend in made:
        await backend.shutdown()


def in_names(rollout_id: str) -> str:
    """What stands for a rollout in the name of its sandbox, whoever named it."""
    return rollout_part(rollout_id).rpartition("-")[2]


def own_sandboxes() -> list[str]:
    """Names of this process's sandboxes that still run, by the double's own listing."""
    from sky_sandbox_double import sdk

    return [box.name for box in sdk.ls() if instance_of(box.name) == instance_id()]


async def run(backend: HarborBackend, rollout_id: str = "r-1", **fields: Any) -> ExecutionOutcome:
    """Run one rollout with a prompt and a label."""
    fields.setdefault("prompt", [{"role": "user", "content": "hello"}])
    fields.setdefault("label", "4")
    return await backend.execute(ExecutionRequest(id=rollout_id, **fields))


def timings(outcome: ExecutionOutcome) -> dict[str, float]:
    """What the parts of a trial took, in seconds."""
    found: dict[str, float] = outcome.workflow.extra_fields["timings_sec"]
    return found
