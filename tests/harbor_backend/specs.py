"""Trials that no Harbor runs, for tests of the decisions about them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from harbor.models.task.config import TaskConfig

from harbor_backend.core.spec import AgentOptions, Model, StagedTask, TrialSpec
from harbor_backend.core.trial import Trial, TrialRegistry
from harbor_backend.program.bundle import EntryPoints
from harbor_backend.program.program import Program, ProgramArguments, make_program
from osmosis_ai.gateway import Endpoint
from osmosis_ai.rollout import ExecutionRequest
from osmosis_ai.rollout.backend.base import ResultCallback
from osmosis_ai.rollout.backend.registry import LiveRollouts


def program_of(agent: Any, grader: Any = None, code_dir: Path | None = None) -> Program:
    """What a backend with these arguments would run."""
    return make_program(ProgramArguments(agent, None, grader, None, code_dir, None))


def native_program(agent: str, *, grader: bool = False) -> Program:
    """A native agent's, of which nothing is imported or built."""
    entry_points = EntryPoints(grader="project:Judge") if grader else None
    return Program(agent, entry_points, None, None)


def workflow_program(*, grader: bool = False, **configs: str) -> Program:
    """A workflow's of a project that does not exist, with a grader or without."""
    graded = {"grader": "project:Judge"} if grader else {}
    return Program(None, EntryPoints(agent="project:Flow", **graded, **configs), None, None)


def make_spec(
    folder: Path,
    *,
    agent: str = "nop",
    program: Program | None = None,
    endpoint: Endpoint | None = None,
    task: str = "",
    has_tests: bool = True,
    request: dict[str, Any] | None = None,
    **fields: Any,
) -> TrialSpec:
    """A trial ``trial`` in a folder; ``task`` is the text of its ``task.toml``."""
    asked = ExecutionRequest.model_validate({"id": "r", "label": "blue", **(request or {})})
    config = TaskConfig.model_validate_toml(task)
    return TrialSpec(
        **{
            "name": "trial",
            "trials_dir": folder,
            "request": asked,
            "program": program or program_of(agent),
            "task": StagedTask(folder / "task", config, has_tests),
            "runtime": folder / "runtime",
            "agent_timeout_sec": asked.agent_timeout_sec,
            "options": AgentOptions("openai/m"),
            "policy": None if endpoint is None else Model(endpoint),
            **fields,
        }
    )


@asynccontextmanager
async def living(
    spec: TrialSpec,
    registry: TrialRegistry | None = None,
    on_workflow_complete: ResultCallback | None = None,
) -> AsyncIterator[Trial]:
    """The trial of a spec, found by its key while the block runs."""
    async with LiveRollouts().admit(spec.request, on_workflow_complete) as rollout:
        trial = Trial(spec, rollout)
        with (registry or TrialRegistry()).living(trial):
            yield trial
