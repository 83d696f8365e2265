"""The relay that leads a native agent to its model: whatever fails there is not the agent's."""

from typing import TYPE_CHECKING, cast

import pytest
from harbor.environments.base import ExecResult

from harbor_backend.errors import HarborBackendError, ModelRouteError, SandboxLostError
from harbor_backend.native.relay import relay
from harbor_backend.places.docker.engine import EngineError
from harbor_backend.trial.categories import category_of
from osmosis_ai.rollout.types.status import RolloutErrorCategory

if TYPE_CHECKING:
    from harbor.environments.base import BaseEnvironment

READY = ExecResult(stdout="ready 17\n", stderr="", return_code=0)
KILLED = ExecResult(stdout="", stderr="", return_code=0)


class Shell:
    """An environment that answers a command after the other, and remembers them."""

    def __init__(self, *answers: ExecResult | Exception) -> None:
        self._answers = list(answers)
        self.commands: list[str] = []

    @property
    def environment(self) -> "BaseEnvironment":
        return cast("BaseEnvironment", self)

    async def exec(self, command: str, cwd: str, user: str, timeout_sec: int) -> ExecResult:
        assert (cwd, user) == ("/", "root")
        assert timeout_sec > 0
        self.commands.append(command)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def ended(code: int = 0, stdout: str | None = "", stderr: str | None = "") -> ExecResult:
    return ExecResult(stdout=stdout, stderr=stderr, return_code=code)


# what starting it comes to, the error, a part of its text
FAILURES: dict[str, tuple[ExecResult | Exception, type[HarborBackendError], str]] = {
    "its port is taken": (
        ended(1, stderr="port 18417 is in use\n"),
        ModelRouteError,
        "exit code 1: port 18417 is in use. Run the task in HarborBackend's own",
    ),
    "there is no runtime": (
        ended(127, stderr="python3: not found"),
        ModelRouteError,
        "exit code 127: python3: not found",
    ),
    "it says nothing": (ended(), ModelRouteError, "exit code 0: "),
    "it says nothing at all": (ended(stdout=None, stderr=None), ModelRouteError, "exit code 0: "),
    "it says something else": (ended(stdout="hello 17"), ModelRouteError, "exit code 0: "),
    "it is ready, and fails": (ended(3, stdout="ready 17"), ModelRouteError, "exit code 3: "),
    "it takes too long": (
        RuntimeError("Command timed out after 60 seconds"),
        ModelRouteError,
        "does not start within 60s: Command timed out after 60 seconds",
    ),
    "a socket of the environment's fails": (
        ConnectionResetError(104, "reset by peer"),
        ModelRouteError,
        "reset by peer",
    ),
    "the environment has an exception of its own": (
        KeyError("pod"),
        ModelRouteError,
        "does not start within 60s: 'pod'",
    ),
    "the sandbox is lost": (SandboxLostError("it ended"), SandboxLostError, "it ended"),
    "the engine is": (EngineError("no answer"), EngineError, "no answer"),
}


@pytest.mark.parametrize("case", FAILURES)
async def test_a_relay_that_does_not_start(case: str) -> None:
    answer, kind, said = FAILURES[case]
    shell = Shell(answer)
    with pytest.raises(HarborBackendError) as caught:
        async with relay(shell.environment):
            pytest.fail("the agent ran without its model")
    assert type(caught.value) is kind
    assert said in str(caught.value)
    category = category_of(type(caught.value).__name__, "agent")
    assert category is RolloutErrorCategory.INFRASTRUCTURE_ERROR
    assert len(shell.commands) == 1


async def test_it_is_ended_with_the_agents_run() -> None:
    shell = Shell(READY, KILLED)
    async with relay(shell.environment):
        assert len(shell.commands) == 1
    assert shell.commands[1] == "kill 17"


ENDS: dict[str, ExecResult | Exception] = {
    "it was gone": ended(1, stderr="no such process"),
    "the sandbox was gone": SandboxLostError("it ended"),
    "the command took too long": RuntimeError("Command timed out after 10 seconds"),
    "the connection was": ConnectionResetError(104, "reset by peer"),
}


@pytest.mark.parametrize("case", ENDS)
async def test_a_relay_that_cannot_be_ended_hides_nothing(case: str) -> None:
    """Neither what the agent brought, nor what it raised."""
    async with relay(Shell(READY, ENDS[case]).environment):
        pass
    with pytest.raises(ZeroDivisionError):
        async with relay(Shell(READY, ENDS[case]).environment):
            raise ZeroDivisionError


@pytest.mark.parametrize("stdout", ["ready", "ready it-is"])
async def test_a_relay_without_a_process_is_none(stdout: str) -> None:
    with pytest.raises(ModelRouteError):
        async with relay(Shell(ended(stdout=stdout), KILLED).environment):
            pass
