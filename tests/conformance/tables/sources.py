"""Samples from a registered source, and the rollout context."""

from tests.conformance.model import (
    AGENT,
    DONE,
    HISTORY,
    TIMEOUT,
    VALIDATION,
    Case,
    failed,
    ok,
    said,
    sample,
)
from tests.conformance.tables.rewards import NO_REWARD

_NATIVE = [{"kind": "final", "blocks": [{"text": "4"}]}]
_KEYS = {"2": "int key", "0.5": "float key"}
_TELEMETRY = {
    "metrics": {"turns": 2, "ratio": 0.5, "half": 0.5},
    "extra_fields": {
        "nested": {"list": [1, "two", None, True], "tuple": [1, [2.5]], "keys": _KEYS},
        **_KEYS,
    },
}
_CONTEXT = {
    "inner": True,
    "restored": True,
    "in_thread": True,
    "in_task": True,
    "rollout_id": "context-nested",
}

CASES = [
    Case(
        "source-without-trajectory",
        "sources:NoTrajectory",
        ok(sample(HISTORY, trajectory_messages=None)),
        "graders:LabelMatch",
        ok(sample(HISTORY, trajectory_messages=None, reward=1.0)),
    ),
    Case(
        "source-with-own-trajectory",
        "sources:OwnTrajectory",
        ok(sample(_NATIVE, trajectory_messages=HISTORY)),
        "graders:One",
        ok(sample(_NATIVE, trajectory_messages=HISTORY, reward=1.0)),
    ),
    Case(
        "source-with-own-label",
        "sources:OwnLabel",
        ok(sample([DONE], label="the source's own")),
        "graders:LabelMatch",
        ok(sample([DONE], label="the source's own", reward=1.0)),
    ),
    Case(
        "source-with-own-reward",
        "sources:OwnReward",
        ok(sample([DONE])),
        "graders:Keeps",
        failed(VALIDATION, NO_REWARD, sample([DONE])),
    ),
    Case(
        "source-with-own-reward-and-another",
        "sources:OwnReward",
        ok(sample([DONE])),
        "graders:One",
        ok(sample([DONE], reward=1.0)),
    ),
    Case(
        "source-with-own-reward-and-a-grader-that-fails",
        "sources:OwnReward",
        ok(sample([DONE])),
        "graders:RaisesEmpty",
        failed(AGENT, "LookupError", sample([DONE])),
    ),
    Case(
        "source-with-own-reward-ungraded",
        "sources:OwnReward",
        ok(sample([DONE])),
        request={"grade": False},
    ),
    Case(
        "source-removes-sample",
        "sources:Removed",
        ok(sample([DONE], remove_sample=True)),
        "graders:Keeps",
        ok(sample([DONE], remove_sample=True)),
    ),
    Case(
        "source-telemetry",
        "sources:Telemetry",
        ok(sample([DONE], **_TELEMETRY)),
        "graders:One",
        ok(sample([DONE], **_TELEMETRY, reward=1.0)),
    ),
    Case(
        "source-not-a-sample",
        "sources:NotASample",
        failed(VALIDATION, "Workflow must yield a RolloutSample, not dict"),
        "graders:One",
    ),
    Case(
        "source-raises",
        "sources:Raising",
        failed(AGENT, "the history is gone"),
        "graders:One",
    ),
    Case(
        "source-is-slow",
        "sources:Slow",
        failed(TIMEOUT, "Workflow exceeded its 1s deadline"),
        "graders:One",
        request={"agent_timeout_sec": 1},
    ),
    Case(
        "source-second",
        "sources:Second",
        failed(
            VALIDATION,
            "Rollout 'source-second' already has a sample source (Fixed): a rollout yields one "
            "sample, so register one agent or session per run()",
        ),
        "graders:One",
    ),
    Case(
        "source-registered-in-constructor",
        "sources:RegisteredInConstructor",
        ok(sample([DONE])),
        "graders:LabelMatch",
        ok(sample([DONE], reward=1.0)),
    ),
    Case(
        "context-nested",
        "sources:NestedContext",
        ok(said(_CONTEXT)),
        "graders:One",
        ok(said(_CONTEXT, reward=1.0)),
    ),
]
