"""The process in the sandbox that calls the execution core for one phase.

``python -m osmosis_ai.rollout.container.runner agent|grader`` reads a
``ContainerInput`` from ``--input`` (``-``: standard input) and writes a
``ContainerResult`` to ``--result`` (a path, or ``fd:N``), with ``--signed`` behind a signature.
"""

import argparse
import asyncio
import contextlib
import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from osmosis_ai.rollout.container import host_only
from osmosis_ai.rollout.container.files import (
    ARTIFACTS_DIR,
    ContainerInput,
    ContainerResult,
    decode_input,
    encode,
)
from osmosis_ai.rollout.container.relay import Relay
from osmosis_ai.rollout.container.signing import SIGNED, sealed
from osmosis_ai.rollout.context import ModelEndpoint, RolloutContext
from osmosis_ai.rollout.execution import failure, run_grader, run_workflow
from osmosis_ai.rollout.resolve import resolve_config, resolve_grader, resolve_workflow
from osmosis_ai.rollout.types.config import AgentWorkflowConfig, GraderConfig
from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.rollout.types.status import RolloutStatus

_PR_SET_DUMPABLE = 4
_DESCRIPTOR = "fd:"
PLACEHOLDER_KEY = "osmosis-rollout"


def main(argv: list[str] | None = None) -> None:
    """Run one phase and end the process at once, whatever threads user code left."""
    parser = argparse.ArgumentParser(prog="osmosis-runner", description=__doc__)
    parser.add_argument("phase", choices=["agent", "grader"])
    parser.add_argument("--input", default="-")
    parser.add_argument("--result", required=True)
    parser.add_argument(SIGNED, action="store_true")
    args = parser.parse_args(argv)
    _seal(args.result)
    host_only.install()
    data, key = _read(args.input), ""
    if args.signed:
        line, _, data = data.partition(b"\n")
        key = line.decode()
    answer = encode(ContainerResult.of(run_phase(args.phase, data)))
    _write(args.result, sealed(answer, key) if args.signed else answer)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def run_phase(phase: str, data: bytes) -> ExecutionResult:
    """Run the agent's or the grader's phase on an encoded ``ContainerInput``."""
    task = decode_input(data)
    call = agent_main if phase == "agent" else grader_main
    # Not asyncio.run(): it waits up to five minutes for threads that blocking user code left.
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    return loop.run_until_complete(call(task))


async def agent_main(task: ContainerInput) -> ExecutionResult:
    """Run the workflow that ``task`` names, its model calls routed to the gateway."""
    try:
        with _importing():
            workflow = resolve_workflow(task.workflow or "")
            config = resolve_config(task.workflow_config, AgentWorkflowConfig, "workflow_config")
    except Exception as exc:
        return failure(exc)
    with _model_route(task) as model, _policy_context(task, model):
        return await run_workflow(
            workflow,
            config,
            task.request(),
            queued_sec=task.queued_sec,
            artifacts_dir=_artifacts_dir(),
        )


async def grader_main(task: ContainerInput) -> ExecutionResult:
    """Grade the sample in ``task`` with the grader that it names."""
    try:
        with _importing():
            grader = resolve_grader(task.grader or "")
            config = resolve_config(task.grader_config, GraderConfig, "grader_config")
    except Exception as exc:
        return failure(exc, sample=task.sample)
    if grader is None:
        raise ValueError("the grader's phase needs a grader")
    workflow = ExecutionResult(status=RolloutStatus.SUCCESS, sample=task.sample)
    with _model_route(task) as judge:
        return await run_grader(
            grader, config, task.request(), workflow, artifacts_dir=_artifacts_dir(), judge=judge
        )


@contextlib.contextmanager
def _importing() -> Iterator[None]:
    """Keep the collector off while modules load: it finds nothing, and costs a sixth of the time.

    What was loaded lives as long as the process, so it is never looked at again.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextlib.contextmanager
def _model_route(task: ContainerInput) -> Iterator[ModelEndpoint | None]:
    """Yield the phase's model: through the relay where there is a gateway socket."""
    if task.gateway_socket is not None:
        with Relay(task.gateway_socket) as relay:
            yield ModelEndpoint(relay.url, PLACEHOLDER_KEY)
    elif task.chat_completions_url:
        yield ModelEndpoint(task.chat_completions_url, task.api_key)
    else:
        yield None


def _policy_context(task: ContainerInput, model: ModelEndpoint | None) -> RolloutContext:
    if model is None:
        return RolloutContext(rollout_id=task.rollout_id)
    return RolloutContext(model.url, model.api_key, task.rollout_id)


def _artifacts_dir() -> Path | None:
    path = Path(ARTIFACTS_DIR)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return path if os.access(path, os.W_OK) else None


def _seal(result: str) -> None:
    """Keep the tools that an agent runs out of this process's memory and descriptors."""
    if result.startswith(_DESCRIPTOR):
        os.set_inheritable(int(result.removeprefix(_DESCRIPTOR)), False)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _read(source: str) -> bytes:
    return sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()


def _write(target: str, data: bytes) -> None:
    if target.startswith(_DESCRIPTOR):
        with os.fdopen(int(target.removeprefix(_DESCRIPTOR)), "wb") as stream:
            stream.write(data)
        return
    temporary = Path(f"{target}.tmp")
    temporary.write_bytes(data)
    temporary.replace(target)


if __name__ == "__main__":
    main()
