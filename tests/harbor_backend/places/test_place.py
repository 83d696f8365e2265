"""How Harbor is told to make a trial's sandboxes, in containers of ours and of Harbor's."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from harbor.models.environment_type import EnvironmentType
from harbor.models.trial.config import EnvironmentConfig

from harbor_backend.core.trial import Trial
from harbor_backend.places.docker.hosts import SANDBOX_HOSTS, SandboxHosts
from harbor_backend.places.docker.local import LocalHosts
from harbor_backend.places.docker.place import ENVIRONMENT, DockerPlace
from harbor_backend.places.harbor.place import ENVIRONMENT as COMPOSE_ENVIRONMENT
from harbor_backend.places.harbor.place import HarborDockerPlace, HarborPlace
from harbor_backend.places.harbor.sandbox import HarborSandboxMaker
from harbor_backend.places.place import Environments, Place
from harbor_backend.places.sandbox import SANDBOX_MAKER
from osmosis_ai.gateway import Endpoint, Gateway
from osmosis_ai.rollout.container.files import CHANNEL_DIR, GATEWAY_SOCKET, RUNTIME_DIR
from sandbox_images import BASE_IMAGE
from tests.harbor_backend.conftest import channel_dirs
from tests.harbor_backend.specs import living, make_spec, native_program, workflow_program

MOUNT: dict[str, Any] = {"type": "bind", "source": "/data", "target": "/data", "read_only": True}
FLOW = workflow_program()


@pytest.fixture
async def endpoint(anyio_backend: str) -> AsyncIterator[Endpoint]:
    async with Gateway() as gateway, gateway.open("r", "embedded/shell") as endpoint:
        yield endpoint


@dataclass
class Made:
    """A trial's sandboxes as Harbor is told to make them, and what their place lends."""

    trial: Trial
    environments: Environments
    folder: Path

    @property
    def maker(self) -> tuple[Path | None, frozenset[str]]:
        maker = self.trial.lent(SANDBOX_MAKER)
        assert isinstance(maker, HarborSandboxMaker)
        return maker.upload, maker.sockets

    @property
    def runtime(self) -> dict[str, Any]:
        """The mount of the runtime."""
        source = str(self.folder / "runtime")
        return {"type": "bind", "source": source, "target": RUNTIME_DIR, "read_only": True}


@asynccontextmanager
async def made(place: Place, folder: Path, **fields: Any) -> AsyncIterator[Made]:
    spec = make_spec(folder, **{"program": FLOW, **fields})
    spec.task.environment_dir.mkdir(parents=True, exist_ok=True)
    async with living(spec) as trial, AsyncExitStack() as stack:
        yield Made(trial, await place.environments(trial, stack), folder)


def container(**fields: Any) -> EnvironmentConfig:
    return EnvironmentConfig(import_path=ENVIRONMENT, **fields)


def ours(made: Made, **update: Any) -> EnvironmentConfig:
    """The configuration of a container of ours."""
    kwargs = {
        "runtime_dir": str(made.folder / "runtime"),
        "trial_key": made.trial.key,
        "rollout_id": "r",
        **update.pop("kwargs", {}),
    }
    return container(kwargs=kwargs, **update)


@dataclass
class Ours:
    """A caller's configuration of our containers, and what follows for both sandboxes."""

    given: EnvironmentConfig | None = None
    keep: bool = False
    both: dict[str, Any] = field(default_factory=dict)
    agent: dict[str, Any] = field(default_factory=dict)


OURS = {
    "nothing is asked for": Ours(),
    "containers are kept": Ours(keep=True, both={"delete": False}),
    "a caller keeps them": Ours(container(delete=False), both={"delete": False}),
    "a mount is the agent's alone": Ours(container(mounts=[MOUNT]), agent={"mounts": [MOUNT]}),
    "arguments are for both": Ours(
        container(kwargs={"supervise": False}), both={"kwargs": {"supervise": False}}
    ),
    "limits are for both": Ours(
        container(override_cpus=2, override_memory_mb=512),
        both={"override_cpus": 2, "override_memory_mb": 512},
    ),
    "its former name": Ours(
        EnvironmentConfig(import_path="harbor_backend.places.docker.docker:DockerEnvironment")
    ),
}


@pytest.mark.parametrize("case", OURS)
async def test_containers_of_ours(case: str, tmp_path: Path) -> None:
    wanted = OURS[case]
    given = None if wanted.given is None else wanted.given.model_copy(deep=True)
    async with made(DockerPlace(wanted.given, keep=wanted.keep), tmp_path) as trial:
        kwargs = wanted.both.get("kwargs", {})
        both = {**wanted.both, "kwargs": kwargs}
        assert trial.environments == Environments(
            ours(trial, **{**both, **wanted.agent}),
            ours(trial, **{**both, "kwargs": {**kwargs, "role": "grader"}}),
        )
        assert isinstance(trial.trial.lent(SANDBOX_HOSTS), LocalHosts)
    assert wanted.given == given


class NoHosts(SandboxHosts):
    """Machines that nobody leases."""

    def lease(self, trial: str) -> Any:
        raise NotImplementedError

    async def engines(self) -> Any:
        raise NotImplementedError


async def test_the_hosts_of_a_place_are_its_trials(tmp_path: Path) -> None:
    hosts = NoHosts()
    place = DockerPlace(hosts=hosts, name="sky-docker")
    async with made(place, tmp_path) as trial:
        assert trial.trial.lent(SANDBOX_HOSTS) is hosts
        assert place.name == "sky-docker"
        with pytest.raises(LookupError, match="lends no sandbox maker"):
            trial.trial.lent(SANDBOX_MAKER)


async def test_two_trials_share_no_configuration(tmp_path: Path) -> None:
    place = DockerPlace()
    async with made(place, tmp_path / "a") as first, made(place, tmp_path / "b") as second:
        assert first.environments.agent == ours(first)
        assert second.environments.agent == ours(second)


def docker(**fields: Any) -> EnvironmentConfig:
    return EnvironmentConfig(type=EnvironmentType.DOCKER, **fields)


KEPT = {"delete": False, "kwargs": {"keep_containers": True}}


@dataclass
class Harbors:
    """A caller's configuration of Harbor's Docker environment, and what the agent's has of it.

    ``graders`` is whose the grader's sandbox is.
    """

    given: EnvironmentConfig | None = None
    forced: bool = False
    keep: bool = False
    services: bool = False
    agent: dict[str, Any] = field(default_factory=dict)
    graders: str = "ours"


HARBORS = {
    "by the task's wish": Harbors(),
    "with services": Harbors(services=True),
    "by force it grades too": Harbors(docker(), forced=True, graders="harbor's"),
    "but not with services": Harbors(docker(), forced=True, services=True),
    "kept by the task's wish": Harbors(keep=True, agent=KEPT),
    "kept by force": Harbors(docker(), forced=True, keep=True, agent=KEPT, graders="harbor's"),
    "a caller's mounts and arguments": Harbors(
        docker(mounts=[MOUNT], kwargs={"a": 1}, override_cpus=2),
        forced=True,
        agent={"mounts": [MOUNT], "kwargs": {"a": 1}, "override_cpus": 2},
        graders="harbor's",
    ),
    "a caller's own overlay": Harbors(
        docker(extra_docker_compose=[Path("/mine.yaml")]),
        forced=True,
        agent={"extra_docker_compose": [Path("/mine.yaml")]},
        graders="harbor's",
    ),
    "a caller keeps them": Harbors(
        docker(delete=False), forced=True, agent={"delete": False}, graders="harbor's"
    ),
}


@pytest.mark.parametrize("with_model", [True, False])
@pytest.mark.parametrize("case", HARBORS)
async def test_harbors_docker_environment(
    case: str, with_model: bool, endpoint: Endpoint, tmp_path: Path
) -> None:
    wanted = HARBORS[case]
    given = None if wanted.given is None else wanted.given.model_copy(deep=True)
    if wanted.services:
        file = tmp_path / "task" / "environment" / "docker-compose.yaml"
        file.parent.mkdir(parents=True)
        file.write_text("services: {main: {}}")
    place = HarborDockerPlace(wanted.given, forced=wanted.forced, keep=wanted.keep)
    fields = {"endpoint": endpoint} if with_model else {}
    async with made(place, tmp_path, **fields) as trial:
        mounts = [*wanted.agent.get("mounts", []), trial.runtime]
        agent = EnvironmentConfig(
            **{
                **wanted.agent,
                "import_path": COMPOSE_ENVIRONMENT,
                "mounts": [*mounts, *channel_mounts(trial, with_model=with_model)],
                "kwargs": {**wanted.agent.get("kwargs", {}), "trial_key": trial.trial.key},
            }
        )
        graders = {
            "harbor's": agent.model_copy(update={"mounts": mounts}),
            "ours": ours(
                trial,
                delete=agent.delete,
                kwargs={"role": "grader", "fallback_image": BASE_IMAGE},
            ),
        }
        # Harbor goes by the import path of a configuration that has one.
        assert trial.environments.agent == agent
        grader = trial.environments.grader.model_copy(update={"type": None})
        assert grader == graders[wanted.graders]
        sockets = frozenset({GATEWAY_SOCKET}) if with_model else frozenset[str]()
        assert trial.maker == (None, sockets)
    assert wanted.given == given
    assert channel_dirs() == set()


def channel_mounts(made: Made, *, with_model: bool) -> list[dict[str, Any]]:
    """The mount of the model's socket, which is there and is the only thing there."""
    found: list[dict[str, Any]] = [dict(each) for each in made.environments.agent.mounts or []]
    channels = [mount for mount in found if mount["target"] == CHANNEL_DIR]
    assert len(channels) == with_model
    for mount in channels:
        assert mount["read_only"]
        assert mount["type"] == "bind"
        (socket,) = Path(mount["source"]).iterdir()
        assert (socket.name, socket.is_socket()) == (Path(GATEWAY_SOCKET).name, True)
    return channels


MINE = EnvironmentConfig(import_path="mine:Mine")

OTHERS: dict[str, tuple[EnvironmentConfig, bool, Any, str, bool, bool]] = {
    # the caller's, keep, the program, its name, whether it is deleted, whether a runtime goes in
    "another of harbor's": (
        EnvironmentConfig(type=EnvironmentType.DAYTONA, mounts=[MOUNT]),
        False,
        FLOW,
        "daytona",
        True,
        True,
    ),
    "a caller's own": (MINE, False, FLOW, "mine:Mine", True, True),
    "kept": (MINE, True, FLOW, "mine:Mine", False, True),
    "kept by the caller": (
        EnvironmentConfig(import_path="mine:Mine", delete=False),
        False,
        FLOW,
        "mine:Mine",
        False,
        True,
    ),
    "nothing of ours runs inside": (
        MINE,
        False,
        native_program("nop"),
        "mine:Mine",
        True,
        False,
    ),
    "only the grader does": (
        MINE,
        False,
        native_program("nop", grader=True),
        "mine:Mine",
        True,
        True,
    ),
}


@pytest.mark.parametrize("case", OTHERS)
async def test_environments_that_know_nothing_of_us(case: str, tmp_path: Path) -> None:
    given, keep, program, name, delete, uploads = OTHERS[case]
    before = given.model_copy(deep=True)
    place = HarborPlace(given, keep=keep)
    async with made(place, tmp_path, program=program) as trial:
        expected = given.model_copy(update={"delete": delete})
        assert trial.environments == Environments(expected, expected)
        assert trial.maker == (tmp_path / "runtime" if uploads else None, frozenset())
    assert place.name == name
    assert given == before


CHECKS: dict[str, tuple[Any, bool, bool]] = {
    # the program, whether there is a model, whether it can run there
    "a workflow without a model": (FLOW, False, True),
    "a workflow with one": (FLOW, True, False),
    "an agent that asks none": (native_program("oracle"), True, True),
}


@pytest.mark.parametrize("case", CHECKS)
def test_nothing_inside_reaches_a_model_there(
    case: str, endpoint: Endpoint, tmp_path: Path
) -> None:
    program, with_model, can_run = CHECKS[case]
    spec = make_spec(tmp_path, program=program, endpoint=endpoint if with_model else None)
    place = HarborPlace(MINE)
    if can_run:
        place.check(spec)
    else:
        with pytest.raises(ValueError, match="environment_config='mine:Mine' has no way"):
            place.check(spec)
