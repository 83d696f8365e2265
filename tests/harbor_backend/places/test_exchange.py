"""A phase over Harbor's interface alone, in an environment that does as it is told."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from harbor.environments.base import ExecResult

from harbor_backend.core.phases import AGENT, GRADER, RUNNER_ENV, Phase, PhaseCall
from harbor_backend.errors import HarborBackendError, SandboxLostError
from harbor_backend.places import exchange
from harbor_backend.places.docker.engine import EngineError
from harbor_backend.places.exchange import run_over_files
from harbor_backend.places.sandbox import PhaseEnd
from osmosis_ai.rollout.container.signing import sealed
from osmosis_ai.rollout.container.supervisor.frames import TIMED_OUT
from tests.harbor_backend.conftest import work_dirs

if TYPE_CHECKING:
    from harbor.environments.base import BaseEnvironment

TASK = b'{"version": 1}'
INPUT, RESULT = "/logs/agent/container_input.json", "/logs/agent/container_result.json"
RUN = (
    f"exec 0<{INPUT} || exit 1; rm -f {INPUT}; exec /opt/osmosis/python/bin/python3 -I -m "
    f"osmosis_ai.rollout.container.runner agent --input - --result {RESULT} --signed"
)
MAX_BYTES = 100


def call(limit_sec: float | None = 5, phase: Phase = AGENT) -> PhaseCall:
    return PhaseCall(phase, TASK, limit_sec, MAX_BYTES)


def ended(code: int = 0, stdout: str | None = "", stderr: str | None = "") -> ExecResult:
    return ExecResult(stdout=stdout, stderr=stderr, return_code=code)


def a_file(path: Path, key: str) -> None:
    path.write_bytes(sealed(b"the result", key))


def a_forged_file(path: Path, key: str) -> None:
    path.write_bytes(sealed(b"another result", "f" * len(key)))


def a_changed_file(path: Path, key: str) -> None:
    path.write_bytes(sealed(b"the result", key).replace(b"the", b"any"))


def an_unsigned_file(path: Path, key: str) -> None:
    path.write_bytes(b"the result")


def a_link(path: Path, key: str) -> None:
    path.symlink_to("/etc/hostname")


def a_large_file(path: Path, key: str) -> None:
    path.write_bytes(sealed(b"x" * (MAX_BYTES + 1), key))


@dataclass
class Scripted:
    """An environment whose phase ends in a way, and whose result is a file of some kind.

    ``broken`` maps its methods, and ``exec`` by the beginning of a command, to
    what they raise.
    """

    ran: ExecResult | Exception = field(default_factory=lambda: ended(0, "out", "err"))
    counted: ExecResult = field(default_factory=lambda: ended(0, "10\n"))
    leaves: Callable[[Path, str], None] = a_file
    broken: dict[str, Exception] = field(default_factory=dict)
    session_id: str = "test__env"
    log: list[Any] = field(default_factory=list)
    key: str = ""

    @property
    def environment(self) -> "BaseEnvironment":
        return cast("BaseEnvironment", self)

    def _note(self, *what: Any) -> None:
        self.log.append(what)
        for beginning, exc in self.broken.items():
            if " ".join(map(str, what)).startswith(beginning):
                raise exc

    async def ensure_dirs(self, paths: list[str]) -> None:
        self._note("ensure_dirs", *paths)

    async def upload_file(self, source: Path, target: str) -> None:
        line, _, task = source.read_bytes().partition(b"\n")
        self.key = line.decode()
        self._note("upload_file", target, task)

    async def download_file(self, source: str, target: Path) -> None:
        self._note("download_file", source)
        self.leaves(target, self.key)

    async def exec(
        self,
        command: str,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | None = None,
    ) -> ExecResult:
        self._note("exec", command, user, env, timeout_sec)
        if command.startswith("chmod "):
            return ended()
        if command.startswith("test -f "):
            return self.counted
        if isinstance(self.ran, Exception):
            raise self.ran
        return self.ran

    @property
    def limit(self) -> int | None:
        """How long the phase's own command was given."""
        (limit,) = [entry[4] for entry in self.log if entry[:2] == ("exec", RUN)]
        assert limit is None or isinstance(limit, int)
        return limit


async def test_the_input_is_gone_before_the_phase_begins() -> None:
    scripted = Scripted()
    end = await run_over_files(scripted.environment, call(26.4))
    assert end == PhaseEnd(0, b"out", b"err", result=b"the result")
    assert scripted.log == [
        ("ensure_dirs", "/logs/agent"),
        ("upload_file", INPUT, TASK),
        ("exec", f"chmod 644 {INPUT}", "root", None, None),
        ("exec", RUN, None, dict(RUNNER_ENV), 26),
        ("exec", f"test -f {RESULT} && wc -c <{RESULT}", "root", None, None),
        ("download_file", RESULT),
    ]
    assert work_dirs() == []


async def test_a_directory_that_is_ready_is_left_alone() -> None:
    scripted = Scripted()
    await run_over_files(scripted.environment, call(None, GRADER), logs_are_ready=True)
    assert [entry[0] for entry in scripted.log] == ["upload_file", "exec", "exec", "download_file"]


NO_TIME = RuntimeError("Command timed out after 5 seconds")

ENDS: dict[str, tuple[Scripted, PhaseEnd, bool]] = {
    # the environment, the end with a limit of 5 s, whether a result is fetched
    "no output": (Scripted(ended(0, None, None)), PhaseEnd(0, b"", b"", b"the result"), True),
    "no result": (Scripted(ended(3), counted=ended(1)), PhaseEnd(3, b"", b""), False),
    "a size that is none": (
        Scripted(ended(), counted=ended(0, "ten")),
        PhaseEnd(0, b"", b""),
        False,
    ),
    "a negative size": (Scripted(ended(), counted=ended(0, "-1")), PhaseEnd(0, b"", b""), False),
    "no size": (Scripted(ended(), counted=ended(0, None)), PhaseEnd(0, b"", b""), False),
    "a result that is too large": (
        Scripted(ended(), counted=ended(0, "166")),
        PhaseEnd(0, b"", b"", result_dropped=166),
        False,
    ),
    "the largest that fits": (
        Scripted(ended(), counted=ended(0, "165")),
        PhaseEnd(0, b"", b"", b"the result"),
        True,
    ),
    "one that grew while it was fetched": (
        Scripted(ended(), leaves=a_large_file),
        PhaseEnd(0, b"", b""),
        True,
    ),
    "one of another key": (
        Scripted(ended(), leaves=a_forged_file),
        PhaseEnd(0, b"", b"", result_forged=True),
        True,
    ),
    "one that was changed": (
        Scripted(ended(), leaves=a_changed_file),
        PhaseEnd(0, b"", b"", result_forged=True),
        True,
    ),
    "one without a signature": (
        Scripted(ended(), leaves=an_unsigned_file),
        PhaseEnd(0, b"", b"", result_forged=True),
        True,
    ),
    "a link to a file of this machine": (
        Scripted(ended(), leaves=a_link),
        PhaseEnd(0, b"", b""),
        True,
    ),
    "time was over": (
        Scripted(NO_TIME, counted=ended(1)),
        PhaseEnd(TIMED_OUT, b"", b"Command timed out after 5 seconds", timed_out=True),
        False,
    ),
    "time was over, and there is a result": (
        Scripted(NO_TIME),
        PhaseEnd(
            TIMED_OUT,
            b"",
            b"Command timed out after 5 seconds",
            result=b"the result",
            timed_out=True,
        ),
        True,
    ),
}


@pytest.mark.parametrize("case", ENDS)
async def test_how_a_phase_ended(case: str) -> None:
    scripted, expected, fetched = ENDS[case]
    scripted.log.clear()
    assert await run_over_files(scripted.environment, call()) == expected
    assert (("download_file", RESULT) in scripted.log) is fetched


LATE = {
    # the exit code, seconds that it took, the limit, whether time was over
    "an error in time": (124, 4.9, 5, False),
    "an error as time was over": (124, 5.0, 5, True),
    "success as time was over": (0, 6.0, 5, False),
    "an error after long, without a limit": (124, 600.0, None, False),
}


@pytest.mark.parametrize("case", LATE)
async def test_some_platforms_tell_it_by_the_exit_code_alone(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, seconds, limit, is_late = LATE[case]
    clock = iter([100.0, 100.0 + seconds])
    monkeypatch.setattr(exchange, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    scripted = Scripted(ended(code), counted=ended(1))
    end = await run_over_files(scripted.environment, call(limit))
    assert (end.code, end.timed_out) == (code, is_late)


LIMITS = {
    # the limit, what the platform allows, what the command is given
    "none": (None, None, None),
    "none, where the platform has one": (None, 60, None),
    "whole seconds": (26.4, None, 26),
    "at least one": (0.0, None, 1),
    "what the platform allows": (3600.0, 60, 60),
    "less than that": (5.0, 60, 5),
}


@pytest.mark.parametrize("case", LIMITS)
async def test_how_long_its_command_may_take(case: str) -> None:
    limit, allowed, expected = LIMITS[case]
    scripted = Scripted()
    await run_over_files(scripted.environment, call(limit), max_exec_sec=allowed)
    assert scripted.limit == expected


FAILURES: dict[str, tuple[str, Exception, float | None]] = {
    # where it comes from, what is raised, the limit
    "making directories": ("ensure_dirs", OSError(28, "No space left on device"), 5),
    "the upload": ("upload_file", ConnectionResetError(104, "reset"), 5),
    "the phase": ("exec exec", RuntimeError("the pod is gone"), 5),
    "a deadline that nobody set": ("exec exec", NO_TIME, None),
    "a deadline of the platform's": ("exec exec", TimeoutError("the call took 60s"), 5),
    "an exception of its own": ("exec test", KeyError("pod"), 5),
    "the download": ("download_file", FileNotFoundError(2, "No such file"), 5),
}


@pytest.mark.parametrize("case", FAILURES)
async def test_whatever_an_environment_raises_is_the_loss_of_its_sandbox(case: str) -> None:
    where, raised, limit = FAILURES[case]
    scripted = Scripted(broken={where: raised})
    said = f"The sandbox of test__env was lost: {type(raised).__name__}: "
    with pytest.raises(SandboxLostError) as caught:
        await run_over_files(scripted.environment, call(limit))
    assert str(caught.value).startswith(said)
    assert caught.value.__cause__ is raised
    assert work_dirs() == []


@pytest.mark.parametrize("raised", [EngineError("no answer"), SandboxLostError("it ended")])
async def test_what_is_ours_is_not_told_twice(raised: HarborBackendError) -> None:
    scripted = Scripted(broken={"exec exec": raised})
    with pytest.raises(HarborBackendError) as caught:
        await run_over_files(scripted.environment, call())
    assert caught.value is raised
