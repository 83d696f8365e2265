"""A start that takes too long by our own limits says so, and is no deadline of Harbor's."""

import asyncio
from collections.abc import Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from harbor.models.task.config import EnvironmentConfig
from harbor.models.trial.paths import TrialPaths

from harbor_backend.core.spec import Model
from harbor_backend.errors import (
    HarborBackendError,
    ModelRouteError,
    SandboxLostError,
    SandboxStartError,
)
from harbor_backend.places.docker import namespaces, supervisor
from harbor_backend.places.docker.ending import last_words
from harbor_backend.places.docker.engine import Engine, EngineError
from harbor_backend.places.docker.environment import DockerEnvironment
from harbor_backend.places.docker.hosts import SANDBOX_HOSTS, ChannelDir, SandboxHost, SandboxHosts
from harbor_backend.places.docker.namespaces import borrow_namespace
from harbor_backend.places.docker.supervisor import SupervisorStart, listening
from osmosis_ai.gateway import Gateway
from osmosis_ai.rollout.container.files import GATEWAY_SOCKET
from tests.harbor_backend.conftest import channel_dirs
from tests.harbor_backend.specs import living, make_spec

HARBORS_SEC = 30


@pytest.fixture
def environment(tmp_path: Path) -> DockerEnvironment:
    """An environment that is not started; no engine is asked for anything."""
    return made(tmp_path)


def made(folder: Path, **options: Any) -> DockerEnvironment:
    (folder / "environment").mkdir()
    return DockerEnvironment(
        environment_dir=folder / "environment",
        environment_name="test",
        session_id="test__env",
        trial_paths=TrialPaths(trial_dir=folder / "trial"),
        task_env_config=EnvironmentConfig(docker_image="x:1"),
        **options,
    )


async def started_by_harbor(environment: DockerEnvironment, limit: float = HARBORS_SEC) -> None:
    """Start an environment as Harbor does, which takes any ``TimeoutError`` for its own."""
    await asyncio.wait_for(environment.start(force_build=False), limit)


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        pytest.param(TimeoutError("a lock took 5s"), "out of time: a lock took 5s", id="its words"),
        pytest.param(TimeoutError(110, "Connection timed out"), "Connection", id="a socket's"),
        pytest.param(TimeoutError(), "no more is known", id="none"),
    ],
)
async def test_time_that_ran_out_in_a_step_of_ours_is_ours(
    environment: DockerEnvironment,
    monkeypatch: pytest.MonkeyPatch,
    raised: TimeoutError,
    said: str,
) -> None:
    async def fail(*_: object) -> None:
        raise raised

    monkeypatch.setattr(environment, "_start", fail)
    with pytest.raises(SandboxStartError, match=said) as caught:
        await started_by_harbor(environment)
    assert not isinstance(caught.value, TimeoutError)
    assert caught.value.__cause__ is raised
    await environment.stop(delete=True)


async def test_harbors_own_deadline_stays_harbors(
    environment: DockerEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wait(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(environment, "_start", wait)
    with pytest.raises(TimeoutError):
        await started_by_harbor(environment, 0.05)
    await environment.stop(delete=True)


@pytest.mark.parametrize("raised", [EngineError("no"), SandboxLostError("gone"), OSError(28, "x")])
async def test_what_else_fails_stays_what_it_is(
    environment: DockerEnvironment, monkeypatch: pytest.MonkeyPatch, raised: Exception
) -> None:
    async def fail(*_: object) -> None:
        raise raised

    monkeypatch.setattr(environment, "_start", fail)
    with pytest.raises(type(raised)) as caught:
        await started_by_harbor(environment)
    assert caught.value is raised
    await environment.stop(delete=True)


class LateHosts(SandboxHosts):
    """Machines of which none answers in time."""

    @asynccontextmanager
    async def lease(self, trial: str) -> Any:
        raise TimeoutError("no host answered within 5s")
        yield

    async def engines(self) -> list[Engine]:
        return []


async def test_a_host_that_is_not_leased_in_time_is_ours_too(tmp_path: Path) -> None:
    async with living(make_spec(tmp_path)) as trial:
        trial.lend(SANDBOX_HOSTS, LateHosts())
        environment = made(tmp_path, trial_key=trial.key)
        with pytest.raises(SandboxStartError, match="no host answered within 5s"):
            await started_by_harbor(environment)
        await environment.stop(delete=True)


class DeafEngine(Engine):
    """An engine that starts containers in which nothing ever connects."""

    def __init__(self, *, status: str = "running", start_error: EngineError | None = None) -> None:
        super().__init__("unix:///nowhere/docker.sock")
        self.containers: list[str] = []
        self._status = status
        self._start_error = start_error

    async def create(self, name: str, config: Any) -> str:
        self.containers.append(name)
        return name

    async def start(self, container: str) -> None:
        if self._start_error is not None:
            raise self._start_error

    async def remove(self, container: str) -> bool:
        self.containers.remove(container)
        return True

    async def inspect(self, container: str) -> dict[str, Any]:
        running = self._status == "running"
        state = {"Status": self._status, "ExitCode": 7, "OOMKilled": False, "Running": running}
        return {"State": state}

    async def logs(self, container: str, tail: int = 20) -> str:
        return "exec format error"

    async def exec_detached(self, container: str, command: Sequence[str], user: str) -> str:
        assert (list(command[-2:-1]), user) == (["beside"], "0:0")
        return "execution"

    async def call(self, method: str, path: str, **_: Any) -> Any:
        assert (method, path) == ("GET", "/exec/execution/json")
        return {"Running": False, "ExitCode": 5}


HOLDERS: dict[str, tuple[EngineError | None, type[HarborBackendError], str]] = {
    # what starting it raises, what the caller gets
    "it does not connect": (
        None,
        SandboxStartError,
        r"The holder of a network namespace did not come up within 0\.05s: is the engine overload",
    ),
    "it does not start": (EngineError("no space"), EngineError, "no space"),
}


@pytest.mark.parametrize("case", HOLDERS)
async def test_a_namespaces_holder_that_does_not_come_up(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_error, kind, said = HOLDERS[case]
    monkeypatch.setattr(namespaces, "_START_TIMEOUT_SEC", 0.05)
    engine = DeafEngine(start_error=start_error)
    with pytest.raises(kind, match=said) as caught:
        await borrow_namespace(engine, "none", tmp_path)
    assert not isinstance(caught.value, TimeoutError)
    assert engine.containers == []
    assert channel_dirs() == set()
    await engine.aclose()


SUPERVISORS = {
    # the container's state, the first process is the image's own, what is said
    "it runs, and says nothing": ("running", False, "did not come up within 0.2s"),
    "its container ended": ("exited", False, "supervisor ended"),
    "it ended beside": ("running", True, "supervisor ended with exit code 5"),
    "the image's program ended": ("exited", True, "ENTRYPOINT ended"),
}


@pytest.mark.parametrize("case", SUPERVISORS)
async def test_a_supervisor_that_does_not_come_up(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, is_beside, said = SUPERVISORS[case]
    monkeypatch.setattr(supervisor, "_START_SEC", 0.2)
    monkeypatch.setattr(supervisor, "_LOOK_SEC", 0.01)
    monkeypatch.chdir(tmp_path)  # a socket's path has to be short
    (tmp_path / "runtime/python/lib/python3.12/site-packages").mkdir(parents=True)
    (tmp_path / "sockets").mkdir()
    engine = DeafEngine(status=status)
    async with listening(ChannelDir(Path("sockets"), "there")) as listener:
        start = SupervisorStart(listener, Path("runtime"), is_beside=is_beside, names_home=False)
        with pytest.raises(SandboxLostError, match=said) as caught:
            await start.connected(engine, "container")
    assert not isinstance(caught.value, TimeoutError)
    assert list((tmp_path / "sockets").iterdir()) == []
    await engine.aclose()


WORDS = {
    "running": "Container running. Its first process printed: exec format error",
    "exited": "Container exited, exit code 7. Its first process printed: exec format error",
}


@pytest.mark.parametrize("status", WORDS)
async def test_the_last_words_of_a_container(status: str) -> None:
    engine = DeafEngine(status=status)
    assert await last_words(engine, "container") == WORDS[status]
    await engine.aclose()


async def test_a_model_without_a_way_of_a_socket_is_no_fault_of_the_agents(
    environment: DockerEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where its engine cannot mount directories of this machine."""

    async def start(*_: object) -> None:
        """Nothing is mounted."""

    monkeypatch.setattr(environment, "_start", start)
    await environment.start(force_build=False)
    async with Gateway() as gateway, gateway.open("r", "embedded/shell") as endpoint:
        with pytest.raises(ModelRouteError, match="no socket can be mounted there"):
            await environment.serve_model(Model(endpoint), GATEWAY_SOCKET)
    await environment.stop(delete=True)


SOCKETS: dict[str, str] = {"its directory is gone": "gone", "its path is too long": "x" * 150}


@pytest.mark.parametrize("case", SOCKETS)
async def test_a_socket_that_cannot_be_made_is_the_routes_failure(
    case: str,
    environment: DockerEnvironment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / SOCKETS[case]

    async def start(host: SandboxHost, force_build: bool) -> None:
        environment._channel_dir = ChannelDir(folder, str(folder))

    monkeypatch.setattr(environment, "_start", start)
    await environment.start(force_build=False)
    async with Gateway() as gateway, gateway.open("r", "embedded/shell") as endpoint:
        with pytest.raises(HarborBackendError):
            await environment.serve_model(Model(endpoint), GATEWAY_SOCKET)
