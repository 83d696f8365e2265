"""Configs of workflows and graders."""

from typing import Any

from tests.conformance.model import (
    DONE,
    HISTORY,
    VALIDATION,
    Case,
    failed,
    matches,
    ok,
    said,
    sample,
)

_READ: dict[str, Any] = {
    "same": True,
    "type": "ToolConfig",
    "name": "tools",
    "temperature": 1.0,
    "tool": 3,
    "tool_name": "add",
    "max_turns": 3,
    "undeclared": {"kept": [1]},
    "max_concurrent": 2,
}
_UNCHANGED = ["tools", [], 3, ["done"], 1]
_PLAIN = [
    {
        "role": "assistant",
        "content": {"name": "plain", "description": "no field of its own"},
    },
    DONE,
]


def _uncopyable(name: str) -> str:
    return rf"{name} \(\w+\) cannot be copied for a run: .*; keep locks, sockets and clients out.*"


CASES = [
    Case(
        "config-holds-model-and-tools",
        "configs:ReadsConfig",
        ok(said(_READ)),
        "graders:One",
        ok(said(_READ, reward=1.0)),
        workflow_config="configs:tool_config",
    ),
    Case(
        "config-without-own-fields",
        "configs:PlainConfig",
        ok(sample(_PLAIN)),
        "graders:LabelMatch",
        ok(sample(_PLAIN, reward=1.0)),
        workflow_config="configs:plain_config",
    ),
    Case(
        "config-mutation-stays-inside",
        "configs:ChangesConfig",
        ok(said(_UNCHANGED)),
        "graders:One",
        ok(said(_UNCHANGED, reward=1.0)),
        workflow_config="configs:tool_config",
        runs=2,
    ),
    Case(
        "config-uncopyable",
        "returns:MessageList",
        failed(VALIDATION, matches(_uncopyable("workflow_config"))),
        "graders:One",
        workflow_config="configs:uncopyable_config",
    ),
    Case(
        "grader-config",
        "returns:MessageList",
        ok(),
        "configs:ReadsJudgeConfig",
        ok(sample(reward=0.5)),
        grader_config="configs:judge_config",
    ),
    Case(
        "grader-config-absent",
        "returns:MessageList",
        ok(sample(HISTORY)),
        "configs:WithoutConfig",
        ok(sample(HISTORY, reward=1.0)),
        workflow_config="configs:plain_config",
    ),
    Case(
        "grader-config-mutation-stays-inside",
        "returns:MessageList",
        ok(),
        "configs:ChangesJudgeConfig",
        ok(sample(reward=0.5)),
        grader_config="configs:judge_config",
        runs=2,
    ),
    Case(
        "grader-config-uncopyable",
        "returns:MessageList",
        ok(),
        "graders:One",
        failed(VALIDATION, matches(_uncopyable("grader_config")), sample()),
        grader_config="configs:uncopyable_judge",
    ),
]
