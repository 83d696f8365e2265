"""A rollout server in a process of its own, as a caller would run it.

Its workflow works until the file that its prompt names appears. Every run
appends a line to ``runs.log`` in the working directory.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

import uvicorn

from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowContext,
    Grader,
    GraderContext,
    LocalBackend,
)
from osmosis_ai.rollout.server import create_rollout_server
from osmosis_ai.rollout.types import AgentWorkflowConfig


def _note(line: str) -> None:
    with Path("runs.log").open("a") as log:
        log.write(f"{line}\n")


class WaitingWorkflow(AgentWorkflow[Any]):
    """Waits for a file, then answers with what it holds."""

    async def run(self, ctx: AgentWorkflowContext[Any]) -> list[dict[str, Any]]:
        gate = Path(ctx.prompt[-1]["content"])
        _note(gate.name)
        while not gate.exists():  # noqa: ASYNC110 (another process makes it)
            await asyncio.sleep(0.02)
        if ctx.artifacts_dir is not None:
            (ctx.artifacts_dir / "note.txt").write_text("done")
        return [*ctx.prompt, {"role": "assistant", "content": gate.read_text()}]


class OneGrader(Grader):
    """Gives 1."""

    async def grade(self, ctx: GraderContext) -> None:
        ctx.set_reward(1.0)


def main() -> None:
    """Serve on the port of the environment until a signal."""
    app = create_rollout_server(
        backend=LocalBackend(
            workflow=WaitingWorkflow,
            workflow_config=AgentWorkflowConfig(name="waiting"),
            grader=OneGrader,
        ),
        shutdown_grace_sec=float(os.environ.get("TEST_GRACE_SEC", "10")),
        takeover_sec=float(os.environ.get("TEST_TAKEOVER_SEC", "2")),
        result_wait_timeout_sec=2,
        polling_lease_timeout_sec=float(os.environ.get("TEST_LEASE_SEC", "120")),
    )
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ["TEST_PORT"]), log_config=None)


if __name__ == "__main__":
    main()
