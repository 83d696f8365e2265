"""What Harbor announces of a trial, and what its rollout is told of it."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from harbor.models.agent.context import AgentContext
from harbor.trial.hooks import HookCallback, TrialEvent, TrialHookEvent
from harbor.trial.queue import TrialQueue

from harbor_backend.core.trial import Trial, TrialRegistry
from harbor_backend.program.program import Program
from harbor_backend.trial.hooks import TrialHooks
from osmosis_ai.common.observer import ModelCall, observed_by
from osmosis_ai.rollout import ExecutionResult, RolloutSample, RolloutStatus
from tests.harbor_backend.reports import at, error, reached, step, timing, trial_result
from tests.harbor_backend.specs import living, make_spec, native_program, workflow_program

START, ENVIRONMENT_START = TrialEvent.START, TrialEvent.ENVIRONMENT_START
AGENT_START, AGENT_END = TrialEvent.AGENT_START, TrialEvent.AGENT_END
VERIFICATION, END, CANCEL = TrialEvent.VERIFICATION_START, TrialEvent.END, TrialEvent.CANCEL

SAMPLED = ExecutionResult(
    status=RolloutStatus.SUCCESS,
    sample=RolloutSample(messages=[{"role": "assistant", "content": "Four."}], label="blue"),
)


@dataclass
class Heard:
    """An observer, and a caller, who write down what they are told."""

    phases: list[str] = field(default_factory=list)
    announced: list[ExecutionResult] = field(default_factory=list)

    def begin(self, phase: str) -> None:
        self.phases.append(phase)

    def end(self, error: str | None = None, *, seconds_ago: float = 0.0) -> None:
        assert error is None
        self.phases.append(f"end {seconds_ago:g}s ago" if seconds_ago else "end")

    def model_call(self, call: ModelCall) -> None:
        raise NotImplementedError

    async def workflow_ended(self, result: ExecutionResult) -> None:
        self.announced.append(result)


class Announcer:
    """A queue's hooks with a living trial, and Harbor's part in calling them."""

    def __init__(self, trial: Trial, heard: Heard, folder: Path) -> None:
        self.trial = trial
        self.heard = heard
        self.hooks: dict[TrialEvent, list[HookCallback]] = {}
        self._folder = folder

    async def announce(
        self, event: TrialEvent, *, name: str = "trial", seconds: float = 0, **fields: Any
    ) -> None:
        result = trial_result(self._folder, **fields)
        config = result.config.model_copy(update={"trial_name": name})
        announced = TrialHookEvent.model_construct(
            event=event,
            task_name="task",
            config=config,
            result=result,
            lock=None,  # type: ignore[arg-type]
            timestamp=at(seconds),
        )
        for hook in self.hooks[event]:
            await hook(announced)

    @property
    def state(self) -> tuple[str, bool]:
        """The rollout's status, and whether a sandbox is waited for."""
        return self.trial.rollout.status.value, bool(self.trial.sandbox_wait)


@asynccontextmanager
async def announcing(folder: Path, program: Program) -> AsyncIterator[Announcer]:
    registry, heard = TrialRegistry(), Heard()
    with observed_by(heard):
        spec = make_spec(folder, program=program, request={"prompt": [{"content": "?"}]})
        async with living(spec, registry, heard.workflow_ended) as trial:
            announcer = Announcer(trial, heard, folder)
            TrialHooks(TrialQueue(1, hooks=announcer.hooks), registry)
            yield announcer


@dataclass
class Sequence:
    """Events with the state after each, and all that was heard at the end.

    ``waits`` says whether a sandbox is waited for. The workflow agent brings its
    result, ``brought``, before its phase ends.
    """

    events: list[tuple[TrialEvent, dict[str, Any], str, bool]]
    phases: list[str]
    announced: list[ExecutionResult] = field(default_factory=list)
    brought: ExecutionResult | None = field(default_factory=lambda: SAMPLED)
    remembered: ExecutionResult | None = field(default_factory=lambda: SAMPLED)
    program: Program = field(default_factory=workflow_program)


ONE_STEP = [step("one", agent_execution=timing(0, 5), verifier=timing(5, 9))]
ASKED = RolloutSample(
    messages=[{"content": "?"}], label="blue", metrics={"input_tokens": 3, "output_tokens": 1}
)
NATIVE_ENDED = ExecutionResult(status=RolloutStatus.SUCCESS, sample=ASKED)
COUNTED = AgentContext(n_input_tokens=3, n_output_tokens=1)

SEQUENCES = {
    "a trial from its beginning to its end": Sequence(
        [
            (START, {}, "running", True),
            (ENVIRONMENT_START, {}, "running", True),
            (AGENT_START, {}, "running", False),
            (AGENT_END, {}, "running", False),
            (VERIFICATION, {}, "grading", False),
            (END, {"verifier": timing(30, 35), "seconds": 36.5}, "grading", False),
        ],
        ["environment", "agent", "end", "grading", "end 1.5s ago"],
        announced=[SAMPLED],
    ),
    "without grading nobody is told before the end": Sequence(
        [
            (START, {}, "running", True),
            (AGENT_START, {}, "running", False),
            (AGENT_END, {}, "running", False),
            (END, {"seconds": 10}, "running", False),
        ],
        ["environment", "agent", "end", "end"],
    ),
    "a native agent's result is made of Harbor's": Sequence(
        [
            (START, {}, "running", True),
            (AGENT_START, {}, "running", False),
            (AGENT_END, {}, "running", False),
            (VERIFICATION, {**reached("agent"), "agent_result": COUNTED}, "grading", False),
        ],
        ["environment", "agent", "end", "grading"],
        announced=[NATIVE_ENDED],
        brought=None,
        remembered=NATIVE_ENDED,
        program=native_program("nop"),
    ),
    "it is announced once": Sequence(
        [
            (START, {}, "running", True),
            (AGENT_END, {}, "running", True),
            (VERIFICATION, {}, "grading", True),
            (VERIFICATION, {}, "grading", True),
        ],
        ["environment", "end", "grading", "grading"],
        announced=[SAMPLED],
    ),
    "steps: no end of one is the workflow's": Sequence(
        [
            (START, {}, "running", True),
            (AGENT_START, {"step_results": []}, "running", False),
            (AGENT_END, {"step_results": []}, "running", False),
            (VERIFICATION, {"step_results": []}, "grading", False),
            (AGENT_START, {"step_results": ONE_STEP}, "grading", False),
            (AGENT_END, {"step_results": ONE_STEP}, "grading", False),
            (VERIFICATION, {"step_results": ONE_STEP}, "grading", False),
            (END, {"step_results": ONE_STEP, "seconds": 9.5}, "grading", False),
        ],
        ["environment", "agent", "end", "grading", "agent", "end", "grading", "end 0.5s ago"],
    ),
    "a sandbox that failed is waited for no more": Sequence(
        [
            (START, {}, "running", True),
            (END, {"exception_info": error("SandboxStartError")}, "running", False),
        ],
        ["environment", "end"],
        remembered=None,
    ),
    "one that Harbor gave up may still come": Sequence(
        [
            (START, {}, "running", True),
            (END, {"exception_info": error("EnvironmentStartTimeoutError")}, "running", True),
        ],
        ["environment", "end"],
        remembered=None,
    ),
    "so may one of a trial that was cancelled": Sequence(
        [
            (START, {}, "running", True),
            (CANCEL, {}, "running", True),
            (END, {"exception_info": error("CancelledError")}, "running", True),
        ],
        ["environment", "end"],
        remembered=None,
    ),
    "an agent that failed": Sequence(
        [
            (START, {}, "running", True),
            (AGENT_START, {}, "running", False),
            (AGENT_END, {}, "running", False),
            (END, {"exception_info": error("WorkflowFailedError")}, "running", False),
        ],
        ["environment", "agent", "end", "end"],
    ),
    "a verifier that did not end": Sequence(
        [(START, {}, "running", True), (END, {"verifier": timing(30)}, "running", False)],
        ["environment", "end"],
        remembered=None,
    ),
}


@pytest.mark.parametrize("case", SEQUENCES)
async def test_a_sequence_of_events(case: str, tmp_path: Path) -> None:
    sequence = SEQUENCES[case]
    async with announcing(tmp_path, sequence.program) as harbor:
        assert harbor.state == ("queued", False)
        states = []
        for event, fields, _, _ in sequence.events:
            if event is AGENT_END:
                harbor.trial.results.workflow = sequence.brought
            await harbor.announce(event, **fields)
            states.append((event, *harbor.state))
        assert states == [(event, *state) for event, _, *state in sequence.events]
        assert harbor.heard == Heard(sequence.phases, sequence.announced)
        assert harbor.trial.rollout.workflow == sequence.remembered


@pytest.mark.parametrize("event", TrialEvent)
async def test_trials_of_others_on_the_queue_are_left_alone(
    event: TrialEvent, tmp_path: Path
) -> None:
    async with announcing(tmp_path, workflow_program()) as harbor:
        await harbor.announce(event, name="another", seconds=5)
        assert harbor.state == ("queued", False)
        assert harbor.heard == Heard()
        assert harbor.trial.results.queued_sec == 0.0


async def test_a_trial_that_the_queue_runs_again_begins_anew(tmp_path: Path) -> None:
    async with announcing(tmp_path, workflow_program()) as harbor:
        for _ in range(2):
            await harbor.announce(START)
            assert harbor.trial.results.workflow is None
            harbor.trial.results.workflow = SAMPLED
        assert harbor.trial.results.runs == 2


async def test_processes_are_spared_while_the_agent_runs_before_the_tasks_tests(
    tmp_path: Path,
) -> None:
    async with announcing(tmp_path, workflow_program()) as harbor:
        seen = []
        for event in (START, AGENT_START, AGENT_END, VERIFICATION):
            await harbor.announce(event)
            seen.append(harbor.trial.spares_processes)
        assert seen == [False, True, False, False]


async def test_how_long_it_was_queued(tmp_path: Path) -> None:
    async with announcing(tmp_path, workflow_program()) as harbor:
        harbor.trial.submitted_at = time.monotonic() - 7
        await harbor.announce(START)
        assert harbor.trial.results.queued_sec == pytest.approx(7, abs=1)


async def test_a_separate_verifiers_sandbox_may_be_waited_for(tmp_path: Path) -> None:
    """The grader's verifier says so itself, and Harbor gives it up with the verifier."""
    async with announcing(tmp_path, workflow_program(grader=True)) as harbor:
        for event in (START, AGENT_START, AGENT_END, VERIFICATION):
            await harbor.announce(event)
        harbor.trial.sandbox_wait.asked()
        await harbor.announce(END, exception_info=error("VerifierTimeoutError"))
        assert harbor.state == ("grading", True)
