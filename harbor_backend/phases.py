"""Running one phase of the execution core inside a sandbox, from the host."""

import shlex
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from harbor.environments.base import BaseEnvironment
from harbor.models.environment_type import EnvironmentType

from harbor_backend.environments.channel import Command, RunResult, SandboxLostError
from harbor_backend.environments.docker import DockerEnvironment
from harbor_backend.environments.engine import EngineError
from harbor_backend.skypilot.lifetime import MAX_EXEC_SEC
from osmosis_ai.rollout.container.files import (
    AGENT_LOGS_DIR,
    INPUT_FILENAME,
    MAX_RESULT_BYTES,
    RESULT_FILENAME,
    RUNTIME_DIR,
    RUNTIME_PYTHON,
    VERIFIER_LOGS_DIR,
    ContainerInput,
    ContainerResult,
    decode,
    encode,
)
from osmosis_ai.rollout.container.supervisor.frames import TIMED_OUT
from osmosis_ai.rollout.deadline import deadline_message
from osmosis_ai.rollout.execution import GRADER_PHASE, WORKFLOW_PHASE
from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.rollout.types.status import RolloutErrorCategory, RolloutStatus

GRACE_SEC = 10.0
_LOG_LIMIT = 4 * 1024 * 1024
_OUT_OF_MEMORY_CODE = 137
_RUNNER = (RUNTIME_PYTHON, "-I", "-m", "osmosis_ai.rollout.container.runner")
# The runtime's OpenSSL was built for the host's paths, which the image need not have.
_ENVIRONMENT = {"SSL_CERT_FILE": f"{RUNTIME_DIR}/ca.pem"}


@dataclass(frozen=True)
class Phase:
    """A phase of the execution core and where it keeps its files in a sandbox."""

    name: str
    title: str
    logs_dir: str


AGENT = Phase("agent", WORKFLOW_PHASE, AGENT_LOGS_DIR)
GRADER = Phase("grader", GRADER_PHASE, VERIFIER_LOGS_DIR)


async def run_phase(
    environment: BaseEnvironment, phase: Phase, task: ContainerInput, log_file: Path
) -> ExecutionResult:
    """Run one phase to its result, whatever its process does.

    The core in the sandbox holds the deadline; a process that does not even
    come back from it is killed some seconds later. What it printed goes to
    ``log_file``.

    Raises:
        SandboxLostError, EngineError: the sandbox failed, not what ran in it.
    """
    timeout = task.agent_timeout_sec if phase is AGENT else task.grader_timeout_sec
    queued = task.queued_sec if phase is AGENT else 0.0
    limit = None if timeout is None else max(timeout - queued, 0.0) + GRACE_SEC
    if isinstance(environment, DockerEnvironment) and environment.supervised:
        done, data = await _over_descriptor(environment, phase, task, limit)
    else:
        done, data = await _over_files(environment, phase, task, limit)
    _save_log(log_file, done)
    if not data:
        return _no_result(phase, task, done, timeout, queued)
    try:
        return decode(ContainerResult, data).result()
    except ValueError as exc:
        return _failed(task, f"The sandbox returned a result that is not valid: {exc}")


async def _over_descriptor(
    environment: DockerEnvironment, phase: Phase, task: ContainerInput, limit: float | None
) -> tuple[RunResult, bytes]:
    """Send the input to standard input and take the result from a descriptor of its own.

    Neither is ever a file, so nothing that the agent starts can read the one
    or write the other.
    """
    arguments = _arguments(phase, "-", "fd:3")
    command = Command(
        [*_RUNNER, *arguments],
        env=_ENVIRONMENT,
        stdin=encode(task),
        timeout_sec=limit,
        output_limit=_LOG_LIMIT,
        result_limit=MAX_RESULT_BYTES,
        # What a grader was given went through the supervisor, of which a fork is a copy.
        runner=None if environment.has_graded else arguments,
    )
    environment.has_graded |= phase is GRADER
    done = await environment.run(command)
    return done, b"" if done.result_dropped else done.result


async def _over_files(
    environment: BaseEnvironment, phase: Phase, task: ContainerInput, limit: float | None
) -> tuple[RunResult, bytes]:
    """Exchange input and result as files, which every Harbor environment can.

    Its exceptions are its own, so that any of them counts as the sandbox's loss.
    """
    try:
        return await _exchange(environment, phase, task, limit)
    except (SandboxLostError, EngineError):
        raise
    except Exception as exc:
        raise lost(environment, exc) from exc


def lost(environment: BaseEnvironment, exc: Exception) -> SandboxLostError:
    """What an exception means that an environment raised of itself."""
    return SandboxLostError(
        f"The sandbox of {environment.session_id} was lost: {type(exc).__name__}: {exc}"
    )


async def _exchange(
    environment: BaseEnvironment, phase: Phase, task: ContainerInput, limit: float | None
) -> tuple[RunResult, bytes]:
    input_path = f"{phase.logs_dir}/{INPUT_FILENAME}"
    result_path = f"{phase.logs_dir}/{RESULT_FILENAME}"
    with tempfile.TemporaryDirectory(prefix="osmosis-phase-") as scratch:
        local = Path(scratch, INPUT_FILENAME)
        local.write_bytes(encode(task))
        is_ready = getattr(environment, "logs_are_ready", False)
        if not is_ready:
            await environment.ensure_dirs([phase.logs_dir])
        await environment.upload_file(local, input_path)
        if not is_ready:
            await environment.exec(f"chmod 644 {input_path}", user="root")
        # The input may hold a token or the label: it is gone before user code begins.
        taken = f"exec 0<{input_path} || exit 1; rm -f {input_path}; exec "
        command = taken + " ".join([*_RUNNER, *_arguments(phase, "-", result_path)])
        run = await _executed(environment, command, limit)
        size = await _size(environment, result_path)
        if size is None:
            return run, b""
        if size > MAX_RESULT_BYTES:
            return replace(run, result_dropped=size), b""
        result = Path(scratch, RESULT_FILENAME)
        await environment.download_file(result_path, result)
        if result.is_symlink() or result.stat().st_size > MAX_RESULT_BYTES:
            return run, b""
        return run, result.read_bytes()


async def _executed(environment: BaseEnvironment, command: str, limit: float | None) -> RunResult:
    """Run a phase's process for at most ``limit`` seconds."""
    seconds = None if limit is None else max(1, round(limit))
    if seconds is not None and environment.type() is EnvironmentType.SKYPILOT:
        seconds = min(seconds, MAX_EXEC_SEC)
    began = time.monotonic()
    try:
        done = await environment.exec(command, env=_ENVIRONMENT, timeout_sec=seconds)
    except RuntimeError as exc:
        if seconds is None or "timed out" not in str(exc):
            raise
        return RunResult(TIMED_OUT, b"", str(exc).encode(), timed_out=True)
    # Harbor's SkyPilot environment tells a command that ran out of time by its exit code alone.
    late = seconds is not None and time.monotonic() - began >= seconds and done.return_code != 0
    stdout, stderr = (done.stdout or "").encode(), (done.stderr or "").encode()
    return RunResult(done.return_code, stdout, stderr, timed_out=late)


async def _size(environment: BaseEnvironment, path: str) -> int | None:
    """The bytes of a file in the sandbox, before any are fetched; ``None`` when it is none."""
    quoted = shlex.quote(path)
    found = await environment.exec(f"test -f {quoted} && wc -c <{quoted}", user="root")
    counted = (found.stdout or "").strip()
    return int(counted) if found.return_code == 0 and counted.isdecimal() else None


def _arguments(phase: Phase, source: str, target: str) -> list[str]:
    return [phase.name, "--input", source, "--result", target]


def _no_result(
    phase: Phase, task: ContainerInput, done: RunResult, timeout: float | None, queued: float
) -> ExecutionResult:
    if done.timed_out and timeout is not None:
        return _failed(
            task, deadline_message(phase.title, timeout, queued), RolloutErrorCategory.TIMEOUT
        )
    if done.result_dropped:
        return _failed(
            task, f"{phase.title} returned a result of more than {MAX_RESULT_BYTES} bytes"
        )
    tail = done.stderr.decode(errors="replace").strip()[-2000:]
    hint = (
        " (killed: out of memory, or by its own code)" if done.code == _OUT_OF_MEMORY_CODE else ""
    )
    return _failed(
        task,
        f"{phase.title} process ended with exit code {done.code}{hint} and without a result. "
        f"Its last output: {tail or 'none'}",
        RolloutErrorCategory.AGENT_ERROR,
    )


def _failed(
    task: ContainerInput,
    message: str,
    category: RolloutErrorCategory = RolloutErrorCategory.VALIDATION_ERROR,
) -> ExecutionResult:
    """A failure of the phase's process; a sample that it was given is kept."""
    return ExecutionResult(
        status=RolloutStatus.FAILURE,
        sample=task.sample,
        err_message=message,
        err_category=category,
    )


def _save_log(path: Path, done: RunResult) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    dropped = f"\n[{done.dropped} bytes dropped]" if done.dropped else ""
    with path.open("ab") as file:
        file.write(done.stdout + done.stderr + dropped.encode())
