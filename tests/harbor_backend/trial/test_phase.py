"""One phase in a sandbox, from the host: what its process may do, and what comes of it."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harbor_backend.core.phases import AGENT, GRACE_SEC, GRADER, Phase, PhaseCall
from harbor_backend.core.spec import Model
from harbor_backend.errors import SandboxLostError
from harbor_backend.places.sandbox import ModelRoute, PhaseEnd, Role, Sandbox
from harbor_backend.trial.phase import run_phase
from osmosis_ai.rollout import ExecutionResult, RolloutSample, RolloutStatus
from osmosis_ai.rollout.container.files import (
    MAX_RESULT_BYTES,
    ContainerInput,
    ContainerResult,
    decode_input,
    encode,
)
from osmosis_ai.rollout.types.status import RolloutErrorCategory

TALK = [{"role": "assistant", "content": "Four."}]
GIVEN = RolloutSample(messages=TALK, label="blue")
AGENTS = ContainerInput(rollout_id="r", agent_timeout_sec=30, queued_sec=4)
GRADERS = ContainerInput(rollout_id="r", grader_timeout_sec=20, queued_sec=4, sample=GIVEN)


class OneEnd(Sandbox):
    """A sandbox whose phase ends in one way, and which remembers what it was asked."""

    role = Role.AGENT

    def __init__(self, end: PhaseEnd | Exception) -> None:
        self._end = end
        self.asked: tuple[Phase, bytes, float | None] | None = None

    async def make_ready(self) -> None:
        raise NotImplementedError

    async def open_directory(self, path: str) -> None:
        raise NotImplementedError

    async def serve_model(self, model: Model, socket_path: str) -> ModelRoute:
        raise NotImplementedError

    async def run_phase(self, call: PhaseCall) -> PhaseEnd:
        self.asked = (call.phase, call.task, call.limit_sec)
        if isinstance(self._end, Exception):
            raise self._end
        return self._end


def ended(code: int = 0, **fields: Any) -> PhaseEnd:
    return PhaseEnd(code, **{"stdout": b"", "stderr": b"", **fields})


def wrote(**fields: Any) -> PhaseEnd:
    """A process that wrote this as its result."""
    return ended(result=json.dumps({"status": "success", **fields}).encode())


def failed(
    message: str,
    category: RolloutErrorCategory = RolloutErrorCategory.VALIDATION_ERROR,
    made: RolloutSample | None = None,
) -> ExecutionResult:
    return ExecutionResult(
        status=RolloutStatus.FAILURE, sample=made, err_message=message, err_category=category
    )


def exited(text: str) -> ExecutionResult:
    return failed(f"Workflow process ended with exit code {text}", RolloutErrorCategory.AGENT_ERROR)


FOUR = RolloutSample(messages=TALK, metrics={"steps": 1}, reward=0.5)
SUCCESS = ExecutionResult(status=RolloutStatus.SUCCESS, sample=FOUR)
LATE = failed(
    "Workflow exceeded its 30s deadline (4.0s of it spent queued)", RolloutErrorCategory.TIMEOUT
)
TOO_LARGE = (
    f"Workflow returned a result of more than {MAX_RESULT_BYTES} bytes: keep less in its messages, "
    "or raise max_result_bytes= of the backend"
)
RESULT = encode(ContainerResult.of(SUCCESS))

ENDS: dict[str, tuple[PhaseEnd, ExecutionResult]] = {
    "a result": (ended(result=RESULT), SUCCESS),
    "a result of a process that failed afterwards": (ended(1, result=RESULT), SUCCESS),
    "a result just before its time was over": (ended(124, result=RESULT, timed_out=True), SUCCESS),
    "a failure in its own words": (
        wrote(status="failure", err_message="no tool", err_category="http_error"),
        failed("no tool", RolloutErrorCategory.HTTP_ERROR),
    ),
    "a result with warnings": (
        wrote(warnings=["it called a model directly"]),
        ExecutionResult(
            status=RolloutStatus.SUCCESS,
            extra_fields={"warnings": ["it called a model directly"]},
        ),
    ),
    "time was over": (ended(124, timed_out=True), LATE),
    "time was over, and its result too large": (
        ended(124, timed_out=True, result_dropped=5),
        LATE,
    ),
    "a result that was too large": (ended(result_dropped=5), failed(TOO_LARGE)),
    "the beginning of one that was": (ended(result=RESULT, result_dropped=5), failed(TOO_LARGE)),
    "a result that its runner did not write": (
        ended(result_forged=True),
        failed(
            "Workflow left a result that its runner did not write: something in the sandbox "
            "replaced it",
            RolloutErrorCategory.AGENT_ERROR,
        ),
    ),
    "no result": (ended(0), exited("0 and without a result. Its last output: none")),
    "an exit code and words": (
        ended(3, stdout=b"not this", stderr=b"  it hurts\n"),
        exited("3 and without a result. Its last output: it hurts"),
    ),
    "words that are no text": (
        ended(3, stderr=b"\xff!"),
        exited("3 and without a result. Its last output: \ufffd!"),
    ),
    "many words": (
        ended(3, stderr=b"x" * 5000 + b"end"),
        exited("3 and without a result. Its last output: " + "x" * 1997 + "end"),
    ),
    "killed": (
        ended(137),
        exited(
            "137 (killed: out of memory, or by its own code) and without a result. "
            "Its last output: none"
        ),
    ),
    "a signal": (ended(-11), exited("-11 and without a result. Its last output: none")),
}


@pytest.mark.parametrize("case", ENDS)
async def test_what_comes_of_a_process(case: str, tmp_path: Path) -> None:
    end, expected = ENDS[case]
    assert await run_phase(OneEnd(end), AGENT, AGENTS, tmp_path / "log") == expected


INVALID: dict[str, bytes] = {
    "no JSON": b"{",
    "no text": b"\xff",
    "no object": b"[]",
    "nothing in it": b"{}",
    "another version": b'{"version": 2, "status": "success"}',
    "an unknown status": b'{"status": "splendid"}',
    "a status that is not a sandbox's to give": b'{"status": "cancelled"}',
    "another": b'{"status": "queued"}',
    "an unknown category": b'{"status": "failure", "err_category": "fate"}',
    "a reward that is no number": b'{"status": "success", "sample": {"reward": NaN}}',
    "messages that are none": b'{"status": "success", "sample": {"messages": [1]}}',
    "nested too deeply": b"[" * 100_000,
    "bytes that are none": b'{"status": "success", "err_message": {"$osmosis:bytes": "!"}}',
}


@pytest.mark.parametrize("case", INVALID)
async def test_a_result_that_is_not_valid(case: str, tmp_path: Path) -> None:
    sandbox = OneEnd(ended(result=INVALID[case]))
    result = await run_phase(sandbox, GRADER, GRADERS, tmp_path / "log")
    text = str(result.err_message)
    assert text.startswith("The sandbox returned a result that is not valid: ")
    assert result == failed(text, made=GIVEN)


@pytest.mark.parametrize("case", ["time was over", "no result", "a result that was too large"])
async def test_a_grader_that_failed_keeps_the_sample(case: str, tmp_path: Path) -> None:
    result = await run_phase(OneEnd(ENDS[case][0]), GRADER, GRADERS, tmp_path / "log")
    assert str(result.err_message).startswith("Grader ")
    assert "queued" not in str(result.err_message)
    assert (result.status, result.sample) == (RolloutStatus.FAILURE, GIVEN)


async def test_time_that_was_over_without_a_deadline_is_an_end_like_others(tmp_path: Path) -> None:
    task = AGENTS.model_copy(update={"agent_timeout_sec": None})
    end = ended(124, timed_out=True)
    result = await run_phase(OneEnd(end), AGENT, task, tmp_path / "log")
    assert result == exited("124 and without a result. Its last output: none")


LIMITS: dict[str, tuple[Phase, dict[str, Any], float | None]] = {
    "what is left for the agent": (AGENT, {"agent_timeout_sec": 30, "queued_sec": 4}, 26),
    "nothing is left": (AGENT, {"agent_timeout_sec": 30, "queued_sec": 31}, 0),
    "it had passed before": (AGENT, {"agent_timeout_sec": -1}, 0),
    "no deadline": (AGENT, {"queued_sec": 4, "grader_timeout_sec": 5}, None),
    "a grader has a deadline of its own": (
        GRADER,
        {"agent_timeout_sec": 30, "grader_timeout_sec": 20, "queued_sec": 4},
        20,
    ),
    "a grader without": (GRADER, {"agent_timeout_sec": 30, "queued_sec": 4}, None),
}


@pytest.mark.parametrize("case", LIMITS)
async def test_how_long_its_process_may_take(case: str, tmp_path: Path) -> None:
    phase, fields, expected = LIMITS[case]
    task = ContainerInput(rollout_id="r", **fields)
    sandbox = OneEnd(ended())
    await run_phase(sandbox, phase, task, tmp_path / "log")
    assert sandbox.asked is not None
    asked, sent, limit = sandbox.asked
    assert (asked, decode_input(sent)) == (phase, task)
    if expected is None:
        assert limit is None
    else:
        assert limit is not None
        assert math.isclose(limit, expected + GRACE_SEC)


async def test_a_sandbox_that_failed_is_no_result(tmp_path: Path) -> None:
    sandbox = OneEnd(SandboxLostError("gone"))
    with pytest.raises(SandboxLostError, match="gone"):
        await run_phase(sandbox, AGENT, AGENTS, tmp_path / "log")
    assert not (tmp_path / "log").exists()


async def test_what_it_printed_is_saved(tmp_path: Path) -> None:
    """Also of a process without a result; a later step's is appended."""
    log = tmp_path / "made" / "workflow.log"
    first = ended(3, stdout=b"out\n", stderr=b"\xff\n")
    for end in (first, replace(first, dropped=7), ended(result=RESULT)):
        await run_phase(OneEnd(end), AGENT, AGENTS, log)
    assert log.read_bytes() == b"out\n\xff\nout\n\xff\n\n[7 bytes dropped]"
