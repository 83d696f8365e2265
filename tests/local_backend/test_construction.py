"""What LocalBackend accepts, and how it refuses the rest."""

from typing import Any

import pytest

from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowConfig,
    Grader,
    GraderConfig,
    LocalBackend,
)
from tests.local_backend.gates import QuickGrader, QuickWorkflow, request

config = AgentWorkflowConfig(name="module level")
judge = GraderConfig(name="module level")


class Incomplete(AgentWorkflow[Any]):
    """Has no run()."""


class IncompleteGrader(Grader):
    """Has no grade()."""


@pytest.mark.parametrize("workflow", [QuickWorkflow, "tests.local_backend.gates:QuickWorkflow"])
@pytest.mark.parametrize("grader", [QuickGrader, "tests.local_backend.gates:QuickGrader"])
async def test_classes_and_strings(workflow: Any, grader: Any) -> None:
    backend = LocalBackend(
        workflow=workflow,
        workflow_config=f"{__name__}:config",
        grader=grader,
        grader_config=f"{__name__}:judge",
    )
    assert backend.workflow is QuickWorkflow
    assert backend.workflow_config is config
    assert backend.grader_config is judge

    outcome = await backend.execute(request())

    assert outcome.result.sample is not None
    assert outcome.result.sample.reward == 1.0


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"workflow": "nocolon"}, ValueError, "expected 'module:attr' format"),
        ({"workflow": "no_such_module:X"}, ImportError, "No module named 'no_such_module'"),
        ({"workflow": "tests.local_backend.gates:X"}, ImportError, "does not export 'X'"),
        ({"workflow": "tests.local_backend.gates:QuickGrader"}, TypeError, "workflow=.*Workflow"),
        ({"workflow": QuickWorkflow()}, TypeError, "workflow=.*subclass of AgentWorkflow"),
        ({"workflow": Incomplete}, TypeError, "workflow=Incomplete does not implement run"),
        ({"workflow": None}, TypeError, "workflow=None"),
        ({"grader": QuickWorkflow}, TypeError, "grader=.*subclass of Grader"),
        ({"grader": IncompleteGrader}, TypeError, "grader=IncompleteGrader .* implement grade"),
        ({"grader": "a:"}, ValueError, "expected 'module:attr' format"),
        ({"workflow_config": AgentWorkflowConfig}, TypeError, "workflow_config=.*instance of"),
        ({"workflow_config": judge}, TypeError, "workflow_config=.*AgentWorkflowConfig"),
        ({"workflow_config": f"{__name__}:judge"}, TypeError, "workflow_config="),
        ({"grader_config": {"name": "x"}}, TypeError, "grader_config=.*instance of GraderConfig"),
        ({"grader_config": f"{__name__}:nothing"}, ImportError, "does not export 'nothing'"),
        ({"max_queue_depth": 0}, ValueError, "max_queue_depth must be at least 1 or None, got 0"),
    ],
)
def test_refusals(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        LocalBackend(**{"workflow": QuickWorkflow, "grader": QuickGrader, **arguments})


def test_arguments_are_keyword_only() -> None:
    with pytest.raises(TypeError, match="positional"):
        LocalBackend(QuickWorkflow)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("arguments", "limit", "grading_limit"),
    [
        ({}, 4, None),
        ({"workflow_config": AgentWorkflowConfig(name="x")}, None, None),
        (
            {
                "workflow_config": AgentWorkflowConfig.model_validate(
                    {"name": "x", "concurrency": {"max_concurrent": 7}}
                ),
                "grader_config": GraderConfig.model_validate(
                    {"name": "x", "concurrency": {"max_concurrent": 2}}
                ),
            },
            7,
            2,
        ),
    ],
)
def test_limits_in_health(
    arguments: dict[str, Any], limit: int | None, grading_limit: int | None
) -> None:
    health = LocalBackend(workflow=QuickWorkflow, **arguments).health()
    assert health["status"] == "ok"
    assert health["concurrency"] == {"max_concurrent": limit, "queued": 0, "running": 0}
    assert health["grading"]["max_concurrent"] == grading_limit
