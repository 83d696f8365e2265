"""An environment that knows nothing of us, as a trial's sandbox."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from harbor.environments.base import ExecResult

from harbor_backend.core.spec import Model
from harbor_backend.core.trial import Trial
from harbor_backend.errors import ModelUnreachableError, SandboxLostError
from harbor_backend.places.harbor.sandbox import HarborSandboxMaker
from harbor_backend.places.sandbox import SANDBOX_MAKER, ModelRoute, Role, Sandbox, sandbox_of
from osmosis_ai.gateway import Endpoint, Gateway
from osmosis_ai.rollout.container.files import GATEWAY_SOCKET, JUDGE_SOCKET
from osmosis_ai.rollout.context import ModelEndpoint
from tests.harbor_backend.specs import living, make_spec, workflow_program

if TYPE_CHECKING:
    from harbor.environments.base import BaseEnvironment

REMOTE = ModelEndpoint("https://engine.example/rollouts/r/v1", "a-token-of-one-rollout")
KEY = "0123456789abcdef"
REACHED = json.dumps({"hop": None, "detail": ""})


def ended(code: int = 0, stdout: str | None = "", stderr: str | None = "") -> ExecResult:
    return ExecResult(stdout=stdout, stderr=stderr, return_code=code)


@dataclass
class Scripted:
    """An environment that answers by the kind of command, and may fail in any.

    ``found`` is what it has at ``/opt/osmosis``: the runtime's key, and the
    image's user.
    """

    found: ExecResult | Exception = field(default_factory=lambda: ended(0, "\n\n"))
    unpacked: ExecResult | Exception = field(default_factory=ended)
    probed: ExecResult | Exception = field(default_factory=lambda: ended(0, REACHED))
    upload: Exception | None = None
    session_id: str = "test__env"
    log: list[str] = field(default_factory=list)

    @property
    def environment(self) -> "BaseEnvironment":
        return cast("BaseEnvironment", self)

    async def upload_file(self, source: Path, target: str) -> None:
        assert source.is_file()
        assert target.startswith("/tmp/osmosis-")
        self.log.append("upload")
        if self.upload is not None:
            raise self.upload

    async def exec(self, command: str, **options: Any) -> ExecResult:
        assert options["user"] == "root"
        kinds = {"cat ": "look", "mkdir -p /opt": "unpack", "mkdir -p /logs": "open"}
        kind = next((name for start, name in kinds.items() if command.startswith(start)), "probe")
        self.log.append(kind)
        answers = {"look": self.found, "unpack": self.unpacked, "probe": self.probed}
        answer = answers.get(kind, ended())
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A published runtime in little, whose archive is kept in this test's own cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "runtimes" / KEY
    path.mkdir(parents=True)
    (path / "file").write_text("x")
    return path


@pytest.fixture
async def endpoint(anyio_backend: str) -> AsyncIterator[Endpoint]:
    async with Gateway() as gateway, gateway.open("r", "embedded/shell") as endpoint:
        yield endpoint


def adapted(
    scripted: Scripted, trial: Trial, maker: HarborSandboxMaker, role: Role = Role.AGENT
) -> Sandbox:
    trial.lend(SANDBOX_MAKER, maker)
    return sandbox_of(scripted.environment, trial, role)


@dataclass
class Case:
    """An environment's answers, and what is done in it to make it ready."""

    scripted: Scripted
    done: list[str]
    role: Role = Role.AGENT
    policy: ModelEndpoint | None = None
    uploads: bool = True
    raised: tuple[type[Exception], str] | None = None


HAS_IT = ended(0, f"{KEY}\n\n")
FAILS = ended(2, "", "tar: no space\n")
NO_HOP = ended(0, json.dumps({"hop": "tls", "detail": "unknown issuer"}))

CASES = {
    "a runtime that is mounted": Case(Scripted(), [], uploads=False),
    "also with a model over a network": Case(Scripted(), [], uploads=False, policy=REMOTE),
    "no runtime": Case(Scripted(), ["look", "upload", "unpack"]),
    "its output is nothing": Case(Scripted(ended(1, None, None)), ["look", "upload", "unpack"]),
    "another runtime": Case(Scripted(ended(0, "fedcba\n\n")), ["look", "upload", "unpack"]),
    "an image that holds it": Case(Scripted(HAS_IT), ["look"]),
    "a model over a network": Case(Scripted(HAS_IT), ["look", "probe"], policy=REMOTE),
    "which no grader asks": Case(Scripted(HAS_IT), ["look"], policy=REMOTE, role=Role.GRADER),
    "it is uploaded before it probes": Case(
        Scripted(), ["look", "upload", "unpack", "probe"], policy=REMOTE
    ),
    "commands would not run as the image's user": Case(
        Scripted(ended(0, f"{KEY}\nworker\n")),
        ["look"],
        raised=(ValueError, "The image's user is worker"),
    ),
    "the sandbox is lost": Case(
        Scripted(ConnectionResetError(104, "reset")),
        ["look"],
        raised=(SandboxLostError, "The sandbox of test__env was lost: ConnectionResetError"),
    ),
    "the upload fails": Case(
        Scripted(upload=RuntimeError("413 too large")),
        ["look", "upload"],
        raised=(SandboxLostError, "was lost: RuntimeError: 413 too large"),
    ),
    "it is not unpacked": Case(
        Scripted(unpacked=FAILS),
        ["look", "upload", "unpack"],
        raised=(SandboxLostError, "was not unpacked in the sandbox of test__env: tar: no space"),
    ),
    "unpacking takes too long": Case(
        Scripted(unpacked=RuntimeError("Command timed out")),
        ["look", "upload", "unpack"],
        raised=(SandboxLostError, "was lost: RuntimeError: Command timed out"),
    ),
    "the model is not reached": Case(
        Scripted(HAS_IT, probed=NO_HOP),
        ["look", "probe"],
        policy=REMOTE,
        raised=(ModelUnreachableError, "at the hop 'tls': unknown issuer"),
    ),
    "the probe does not run": Case(
        Scripted(HAS_IT, probed=ended(127, "", "not found")),
        ["look", "probe"],
        policy=REMOTE,
        raised=(ModelUnreachableError, "did not run in sandbox test__env"),
    ),
    "the sandbox is lost while it probes": Case(
        Scripted(HAS_IT, probed=OSError("gone")),
        ["look", "probe"],
        policy=REMOTE,
        raised=(SandboxLostError, "was lost: OSError: gone"),
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_a_sandbox_is_made_ready(
    name: str, runtime: Path, endpoint: Endpoint, tmp_path: Path
) -> None:
    case = CASES[name]
    case.scripted.log.clear()
    policy = None if case.policy is None else Model(endpoint, case.policy)
    spec = make_spec(tmp_path, program=workflow_program(), policy=policy)
    async with living(spec) as trial:
        maker = HarborSandboxMaker(runtime if case.uploads else None)
        sandbox = adapted(case.scripted, trial, maker, case.role)
        assert sandbox.role is case.role
        assert not sandbox.ends_before_grading
        if case.raised is None:
            await sandbox.make_ready()
            assert ("runtime_upload" in trial.results.timings) is ("upload" in case.done)
        else:
            kind, said = case.raised
            with pytest.raises(kind) as caught:
                await sandbox.make_ready()
            assert said in str(caught.value)
    assert case.scripted.log == case.done


NO_WAY = (
    "The grader's sandbox has no way to its model: Harbor's own environment was forced, and "
    "mounts only the agent's socket"
)
ROUTES: dict[str, tuple[Role, str, frozenset[str], ModelEndpoint | None, ModelRoute, list[str]]] = {
    # role, the socket's path, those that are mounted, the remote address, the route, the notes
    "a socket that is mounted": (
        Role.AGENT,
        GATEWAY_SOCKET,
        frozenset({GATEWAY_SOCKET}),
        None,
        ModelRoute(socket=GATEWAY_SOCKET),
        [],
    ),
    "an address": (
        Role.AGENT,
        GATEWAY_SOCKET,
        frozenset(),
        REMOTE,
        ModelRoute(url=REMOTE.url, api_key=REMOTE.api_key),
        [],
    ),
    "an address wins over a socket": (
        Role.AGENT,
        GATEWAY_SOCKET,
        frozenset({GATEWAY_SOCKET}),
        REMOTE,
        ModelRoute(url=REMOTE.url, api_key=REMOTE.api_key),
        [],
    ),
    "a judge's, where only the agent's is mounted": (
        Role.GRADER,
        JUDGE_SOCKET,
        frozenset({GATEWAY_SOCKET}),
        None,
        ModelRoute(),
        [NO_WAY],
    ),
}


@pytest.mark.parametrize("case", ROUTES)
async def test_the_way_to_a_model(case: str, endpoint: Endpoint, tmp_path: Path) -> None:
    role, path, sockets, remote, expected, notes = ROUTES[case]
    async with living(make_spec(tmp_path, program=workflow_program())) as trial:
        sandbox = adapted(Scripted(), trial, HarborSandboxMaker(sockets=sockets), role)
        assert await sandbox.serve_model(Model(endpoint, remote), path) == expected
        assert trial.results.notes == notes


async def test_a_directory_is_opened_by_root(tmp_path: Path) -> None:
    scripted = Scripted()
    async with living(make_spec(tmp_path, program=workflow_program())) as trial:
        await adapted(scripted, trial, HarborSandboxMaker()).open_directory("/logs/artifacts")
    assert scripted.log == ["open"]


async def test_an_environment_of_a_place_that_makes_no_sandboxes(tmp_path: Path) -> None:
    async with living(make_spec(tmp_path, program=workflow_program())) as trial:
        with pytest.raises(LookupError, match="lends no sandbox maker"):
            sandbox_of(Scripted().environment, trial, Role.AGENT)
