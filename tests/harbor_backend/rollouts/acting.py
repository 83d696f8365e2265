"""Rollouts whose workflow runs a shell command, and what it printed."""

from typing import Any

from osmosis_ai.rollout import ExecutionOutcome


def shell(command: str) -> dict[str, Any]:
    """Fields of a rollout whose workflow runs this command."""
    return {"prompt": [{"role": "user", "content": f"Run:\n```sh\n{command}\n```\n"}]}


def said(outcome: ExecutionOutcome) -> str:
    """What the workflow said last."""
    assert outcome.workflow.sample is not None, outcome.workflow
    return str(outcome.workflow.sample.messages[-1]["content"])
