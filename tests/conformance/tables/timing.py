"""Deadlines of both phases."""

from tests.conformance.model import DONE, TIMEOUT, Case, failed, ok, sample

_DONE = sample([DONE])


def _late(timeout: str) -> str:
    return f"exceeded its {timeout}s deadline"


def _agent(name: str, workflow: str, timeout: float, shown: str) -> Case:
    return Case(
        f"agent-deadline-{name}",
        f"timing:{workflow}",
        failed(TIMEOUT, f"Workflow {_late(shown)}"),
        "graders:One",
        request={"agent_timeout_sec": timeout},
    )


def _grader(name: str, grader: str, timeout: float, shown: str, reward: float | None) -> Case:
    return Case(
        f"grader-deadline-{name}",
        "timing:Quick",
        ok(_DONE),
        grader,
        failed(TIMEOUT, f"Grader {_late(shown)}", sample([DONE], reward=reward)),
        request={"grader_timeout_sec": timeout},
    )


CASES = [
    _agent("zero", "Quick", 0, "0"),
    _agent("negative", "Quick", -2.5, "-2.5"),
    _agent("passed", "Sleeping", 1, "1"),
    _agent("passed-by-blocking", "Blocking", 1, "1"),
    _agent("passed-by-blocking-then-raising", "BlockingThenRaising", 1, "1"),
    _agent("cancellation-swallowed", "Swallowing", 1, "1"),
    _agent("cancellation-replaced", "Replacing", 1, "1"),
    Case(
        "agent-deadline-cleanup-runs",
        "timing:CleaningUp",
        failed(TIMEOUT, f"Workflow {_late('1')}"),
        "graders:One",
        request={"agent_timeout_sec": 1},
        artifacts={"cleanup.txt": b"ran"},
    ),
    _grader("zero", "graders:One", 0, "0", None),
    _grader("negative", "graders:One", -1, "-1", None),
    _grader("passed", "timing:SleepingGrader", 1, "1", 0.5),
    _grader("passed-by-blocking", "timing:BlockingGrader", 1, "1", 1.0),
    _grader("cancellation-swallowed", "timing:SwallowingGrader", 1, "1", 1.0),
    Case(
        "deadlines-are-independent",
        "timing:Quick",
        ok(_DONE),
        "timing:SleepingGrader",
        failed(TIMEOUT, f"Grader {_late('1')}", sample([DONE], reward=0.5)),
        request={"agent_timeout_sec": 300, "grader_timeout_sec": 1},
    ),
    Case(
        "deadlines-kept",
        "timing:Quick",
        ok(_DONE),
        "graders:LabelMatch",
        ok(sample([DONE], reward=1.0)),
        request={"agent_timeout_sec": 300, "grader_timeout_sec": 300},
    ),
]
