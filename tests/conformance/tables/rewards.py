"""What graders do to the sample."""

from typing import Any

from osmosis_ai.rollout.execution import NO_GRADER, NO_LABEL
from tests.conformance.model import (
    AGENT,
    HISTORY,
    TIMEOUT,
    VALIDATION,
    Case,
    Phase,
    failed,
    matches,
    ok,
    sample,
)

NO_REWARD = (
    "The sample has no reward after grading: call ctx.set_reward() in grade() (its "
    "return value is ignored), or set ctx.sample.remove_sample"
)
_NO_SAMPLE = (
    "No sample to grade: the rollout collected none, or the grader removed it from "
    "its context (set ctx.sample.remove_sample to drop a sample)"
)
_NOT_FINITE = matches(
    r"1 validation error\(s\) for RolloutSample: reward: Input should be a finite number"
)
_TELEMETRY: dict[str, Any] = {
    "metrics": {"steps": 1.0, "tokens": 7.0, "graded": 3, "half": 0.5},
    "extra_fields": {"why": {"rubric": ["a", "b"], "7": "seven"}},
}
_EDITED = [*HISTORY, {"role": "grader", "content": {"raw": b"\x00\xff", "score": 1.5}}]


def _graded(name: str, grader: str, graded: Phase) -> Case:
    return Case(name, "returns:MessageList", ok(), f"graders:{grader}", graded)


CASES = [
    _graded("reward-set", "One", ok(sample(reward=1.0))),
    _graded("reward-whole-number", "WholeNumber", ok(sample(reward=-2.0))),
    _graded("reward-assigned", "Assigned", ok(sample(reward=0.25))),
    _graded("reward-numeric-text", "RewardNumericText", ok(sample(reward=0.5))),
    _graded("reward-bool", "RewardBool", ok(sample(reward=1.0))),
    _graded("reward-nan", "RewardNaN", failed(VALIDATION, _NOT_FINITE, sample())),
    _graded("reward-inf", "RewardInf", failed(VALIDATION, _NOT_FINITE, sample())),
    _graded("reward-minus-inf", "RewardMinusInf", failed(VALIDATION, _NOT_FINITE, sample())),
    _graded("reward-nan-smuggled", "RewardSmuggled", failed(VALIDATION, _NOT_FINITE)),
    _graded(
        "reward-text",
        "RewardText",
        failed(VALIDATION, matches(r".*reward: Input should be a valid number.*"), sample()),
    ),
    _graded("reward-none", "RewardNone", failed(VALIDATION, NO_REWARD, sample())),
    _graded("reward-returned-only", "ReturnsOnly", failed(VALIDATION, NO_REWARD, sample())),
    _graded("grader-drops-sample", "DropsSample", failed(VALIDATION, _NO_SAMPLE)),
    _graded(
        "grader-replaces-sample",
        "ReplacesSample",
        ok(sample([{"role": "assistant", "content": "new"}], label=None, reward=0.5)),
    ),
    _graded(
        "grader-not-a-sample",
        "NotASample",
        failed(VALIDATION, "Grader must yield a RolloutSample, not dict"),
    ),
    _graded("remove-without-reward", "Removes", ok(sample(remove_sample=True))),
    _graded("remove-with-reward", "RemovesWithReward", ok(sample(remove_sample=True, reward=0.75))),
    Case(
        "grader-telemetry",
        "returns:Output",
        ok(sample(metrics={"steps": 1.0, "tokens": 7.0})),
        "graders:Telemetry",
        ok(sample(**_TELEMETRY, reward=1.0)),
    ),
    _graded(
        "grader-edits-messages",
        "EditsMessages",
        ok(sample(_EDITED, trajectory_messages=HISTORY, reward=1.0)),
    ),
    _graded(
        "grader-value-error",
        "RaisesValueError",
        failed(VALIDATION, "cannot be graded", sample(metrics={"before": 1.0})),
    ),
    _graded(
        "grader-runtime-error",
        "RaisesRuntimeError",
        failed(AGENT, "the judge is away", sample(reward=0.5)),
    ),
    _graded(
        "grader-own-timeout",
        "RaisesTimeoutError",
        failed(TIMEOUT, "the judge took too long", sample()),
    ),
    _graded("grader-empty-text", "RaisesEmpty", failed(AGENT, "LookupError", sample())),
    _graded(
        "grader-constructor-raises",
        "ConstructorRaises",
        failed(AGENT, "no judge can be built", sample()),
    ),
    _graded("grader-sys-exit", "SysExit", failed(AGENT, "Grader called sys.exit(4)", sample())),
    _graded(
        "grader-cancels-itself",
        "CancelsItself",
        failed(AGENT, "Grader raised CancelledError by itself", sample()),
    ),
    Case(
        "no-grader",
        "returns:MessageList",
        ok(),
        None,
        failed(VALIDATION, NO_GRADER, sample()),
    ),
    Case(
        "no-grader-grade-not-wanted",
        "returns:MessageList",
        ok(),
        request={"grade": False},
    ),
    Case(
        "no-label-no-metadata",
        "returns:MessageList",
        ok(sample(label=None)),
        "graders:One",
        failed(VALIDATION, NO_LABEL, sample(label=None)),
        request={"label": None},
    ),
    Case(
        "empty-metadata-counts",
        "returns:MessageList",
        ok(sample(label=None)),
        "graders:One",
        ok(sample(label=None, reward=1.0)),
        request={"label": None, "metadata": {}},
    ),
    Case(
        "empty-label-counts",
        "returns:MessageList",
        ok(sample(label="")),
        "graders:LabelMatch",
        ok(sample(label="", reward=0.0)),
        request={"label": ""},
    ),
]
