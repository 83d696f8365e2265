"""Running one phase of the execution core inside a sandbox, from the host."""

import asyncio
from pathlib import Path

from harbor_backend.core.phases import AGENT, GRACE_SEC, Phase, PhaseCall
from harbor_backend.places.sandbox import PhaseEnd, Sandbox
from osmosis_ai.rollout.container.files import (
    MAX_RESULT_BYTES,
    ContainerInput,
    decode_result,
    encode,
)
from osmosis_ai.rollout.deadline import deadline_message
from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.rollout.types.status import RolloutErrorCategory, RolloutStatus

_OUT_OF_MEMORY_CODE = 137
_SHOWN_CHARACTERS = 2000
_CLAIMED = {
    RolloutErrorCategory.TIMEOUT,
    RolloutErrorCategory.VALIDATION_ERROR,
    RolloutErrorCategory.HTTP_ERROR,
    RolloutErrorCategory.AGENT_ERROR,
}


async def run_phase(
    sandbox: Sandbox,
    phase: Phase,
    task: ContainerInput,
    log_file: Path,
    max_result_bytes: int = MAX_RESULT_BYTES,
) -> ExecutionResult:
    """Run one phase to its result, whatever its process does.

    The core in the sandbox holds the deadline; a process that does not even
    come back from it is killed some seconds later. What it printed goes to
    ``log_file``.

    Raises:
        HarborBackendError: the sandbox failed, not what ran in it.
    """
    timeout = task.agent_timeout_sec if phase is AGENT else task.grader_timeout_sec
    queued = task.queued_sec if phase is AGENT else 0.0
    limit = None if timeout is None else max(timeout - queued, 0.0) + GRACE_SEC
    call = PhaseCall(phase, encode(task), limit, max_result_bytes)
    end = await sandbox.run_phase(call)
    _save_log(log_file, end)
    if end.result_dropped or not end.result:
        return _no_result(call, task, end, timeout, queued)
    try:
        return await asyncio.to_thread(_decoded, end.result, max_result_bytes)
    except ValueError as exc:
        return _failed(task, f"The sandbox returned a result that is not valid: {exc}")


def _decoded(data: bytes, max_bytes: int) -> ExecutionResult:
    """No process in a sandbox can say that its failure was not its own but the engine's."""
    result = decode_result(data, max_bytes).result()
    if result.err_category is None or result.err_category in _CLAIMED:
        return result
    return result.model_copy(update={"err_category": RolloutErrorCategory.AGENT_ERROR})


def _no_result(
    call: PhaseCall, task: ContainerInput, end: PhaseEnd, timeout: float | None, queued: float
) -> ExecutionResult:
    phase = call.phase
    if end.timed_out and timeout is not None:
        return _failed(
            task, deadline_message(phase.title, timeout, queued), RolloutErrorCategory.TIMEOUT
        )
    if end.result_dropped:
        return _failed(
            task,
            f"{phase.title} returned a result of more than {call.max_result_bytes} bytes: keep "
            "less in its messages, or raise max_result_bytes= of the backend",
        )
    if end.result_forged:
        return _failed(
            task,
            f"{phase.title} left a result that its runner did not write: something in the "
            "sandbox replaced it",
            RolloutErrorCategory.AGENT_ERROR,
        )
    tail = end.stderr.decode(errors="replace").strip()[-_SHOWN_CHARACTERS:]
    is_out_of_memory = end.code == _OUT_OF_MEMORY_CODE
    hint = " (killed: out of memory, or by its own code)" if is_out_of_memory else ""
    return _failed(
        task,
        f"{phase.title} process ended with exit code {end.code}{hint} and without a result. "
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


def _save_log(path: Path, end: PhaseEnd) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    dropped = f"\n[{end.dropped} bytes dropped]" if end.dropped else ""
    with path.open("ab") as file:
        file.write(end.stdout + end.stderr + dropped.encode())
