"""Running a phase over Harbor's interface alone: its input and its result are files."""

import asyncio
import secrets
import shlex
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from harbor.environments.base import BaseEnvironment

from harbor_backend.core.phases import RUNNER, RUNNER_ENV, PhaseCall
from harbor_backend.errors import HarborBackendError, SandboxLostError
from harbor_backend.places.plain_file import NotPlainError, read_plain
from harbor_backend.places.sandbox import PhaseEnd
from osmosis_ai.rollout.container.files import INPUT_FILENAME, RESULT_FILENAME
from osmosis_ai.rollout.container.signing import SIGNATURE_BYTES, SIGNED, opened
from osmosis_ai.rollout.container.supervisor.frames import TIMED_OUT


def lost(environment: BaseEnvironment, exc: Exception) -> SandboxLostError:
    """What an exception means that an environment raised of itself."""
    return SandboxLostError(
        f"The sandbox of {environment.session_id} was lost: {type(exc).__name__}: {exc}"
    )


async def run_over_files(
    environment: BaseEnvironment,
    call: PhaseCall,
    *,
    logs_are_ready: bool = False,
    max_exec_sec: int | None = None,
) -> PhaseEnd:
    """Run a phase in any environment of Harbor's; see ``Sandbox.run_phase``.

    Args:
        logs_are_ready: the phase's directory is there, open to all.
        max_exec_sec: what the platform allows a command.

    Raises:
        SandboxLostError: the environment raised something; its exceptions are
            its own, so that any of them counts as the sandbox's loss.
    """
    seconds = None if call.limit_sec is None else max(1, round(call.limit_sec))
    if seconds is not None and max_exec_sec is not None:
        seconds = min(seconds, max_exec_sec)
    try:
        return await _exchange(environment, call, seconds, logs_are_ready=logs_are_ready)
    except HarborBackendError:
        raise
    except Exception as exc:
        raise lost(environment, exc) from exc


async def _exchange(
    environment: BaseEnvironment,
    call: PhaseCall,
    seconds: int | None,
    *,
    logs_are_ready: bool,
) -> PhaseEnd:
    phase, key = call.phase, secrets.token_hex(32)
    input_path = f"{phase.logs_dir}/{INPUT_FILENAME}"
    result_path = f"{phase.logs_dir}/{RESULT_FILENAME}"
    with tempfile.TemporaryDirectory(prefix="osmosis-phase-") as scratch:
        local = Path(scratch, INPUT_FILENAME)
        local.write_bytes(key.encode() + b"\n" + call.task)
        if not logs_are_ready:
            await environment.ensure_dirs([phase.logs_dir])
        await environment.upload_file(local, input_path)
        if not logs_are_ready:
            await environment.exec(f"chmod 644 {input_path}", user="root")
        # The input may hold a token or the label: it is gone before user code begins.
        taken = f"exec 0<{input_path} || exit 1; rm -f {input_path}; exec "
        command = taken + " ".join([*RUNNER, *phase.arguments("-", result_path), SIGNED])
        end = await _executed(environment, command, seconds)
        size = await _size(environment, result_path)
        if size is None:
            return end
        if size > call.max_result_bytes + SIGNATURE_BYTES:
            return replace(end, result_dropped=size)
        result = Path(scratch, RESULT_FILENAME)
        await environment.download_file(result_path, result)
        try:
            limit = call.max_result_bytes + SIGNATURE_BYTES
            data = await asyncio.to_thread(read_plain, result, limit)
        except (FileNotFoundError, NotPlainError):  # whatever it is by now, it is no result
            return end
        signed = opened(data, key)
        return replace(end, result_forged=True) if signed is None else replace(end, result=signed)


async def _executed(environment: BaseEnvironment, command: str, seconds: int | None) -> PhaseEnd:
    """Run a phase's process for at most ``seconds``."""
    began = time.monotonic()
    try:
        done = await environment.exec(command, env=dict(RUNNER_ENV), timeout_sec=seconds)
    except RuntimeError as exc:
        if seconds is None or "timed out" not in str(exc):
            raise
        return PhaseEnd(TIMED_OUT, b"", str(exc).encode(), timed_out=True)
    # Harbor's SkyPilot environment tells a command that ran out of time by its exit code alone.
    late = seconds is not None and time.monotonic() - began >= seconds and done.return_code != 0
    stdout, stderr = (done.stdout or "").encode(), (done.stderr or "").encode()
    return PhaseEnd(done.return_code, stdout, stderr, timed_out=late)


async def _size(environment: BaseEnvironment, path: str) -> int | None:
    """The bytes of a file in the sandbox, before any are fetched; ``None`` when it is none."""
    quoted = shlex.quote(path)
    found = await environment.exec(f"test -f {quoted} && wc -c <{quoted}", user="root")
    counted = (found.stdout or "").strip()
    return int(counted) if found.return_code == 0 and counted.isdecimal() else None
