"""Everything about a trial that is decided before Harbor runs it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harbor.models.task.config import TaskConfig

from osmosis_ai.rollout.container.files import MAX_RESULT_BYTES
from osmosis_ai.rollout.context import ModelEndpoint
from osmosis_ai.rollout.types.execution import ExecutionRequest

if TYPE_CHECKING:
    from harbor_backend.program.program import Program
    from osmosis_ai.gateway import Endpoint


@dataclass(frozen=True)
class StagedTask:
    """A trial's own copy of a task: its configuration, and whether it brings tests of its own.

    ``origin`` is the task that was copied, ``notes`` what its author should know.
    """

    path: Path
    config: TaskConfig
    has_tests: bool
    origin: Path | None = None
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The task's name: its directory's."""
        return self.path.name

    @property
    def environment_dir(self) -> Path:
        """What its image is made of."""
        return self.path / "environment"

    def original(self, path: Path) -> Path:
        """Where what is in the copy is in the task itself; what is only in the copy, there."""
        copy, path = self.path.resolve(), path.resolve()
        if self.origin is None or not path.is_relative_to(copy):
            return path
        there = self.origin / path.relative_to(copy)
        return there if there.exists() else path


@dataclass(frozen=True)
class Model:
    """A model that code in a sandbox may call.

    ``remote`` is where a sandbox that is not on this machine finds it; ``None``
    means that a socket leads to it.
    """

    endpoint: "Endpoint"
    remote: ModelEndpoint | None = None


@dataclass(frozen=True)
class AgentOptions:
    """How the caller wants agents to run.

    ``model_name`` and ``native_kwargs`` are for Harbor's own agents;
    ``setup_timeout_sec`` is Harbor's default when it is ``None``.
    """

    model_name: str
    native_kwargs: Mapping[str, Any] = field(default_factory=dict)
    setup_timeout_sec: float | None = None


@dataclass(frozen=True)
class TrialSpec:
    """One trial as it is to be run.

    ``runtime`` is what has to be at ``/opt/osmosis`` in its sandboxes.
    ``agent_timeout_sec`` is the request's, else the task's. ``policy`` is the
    agent's model and ``judge`` the grader's, where there is one. ``workflow_rewards``
    lets a reward count that the workflow itself set. ``max_result_bytes`` bounds what a
    phase of ours returns.
    """

    name: str
    trials_dir: Path
    request: ExecutionRequest
    program: "Program"
    task: StagedTask
    runtime: Path
    agent_timeout_sec: float | None
    options: AgentOptions
    policy: Model | None = None
    judge: Model | None = None
    shared_grading: bool = False
    workflow_rewards: bool = False
    max_result_bytes: int = MAX_RESULT_BYTES

    @property
    def trial_dir(self) -> Path:
        """Where Harbor works on it."""
        return self.trials_dir / self.name

    @property
    def is_graded_by_sdk(self) -> bool:
        """Whether an SDK grader runs: a task's own tests always win over it."""
        return self.request.grade and not self.task.has_tests and self.program.has_grader

    @property
    def is_graded_by_task(self) -> bool:
        """Whether the task's own tests run; they also grade the work of an agent that failed."""
        return self.request.grade and self.task.has_tests

    @property
    def has_verifier(self) -> bool:
        """Whether anything grades it."""
        return self.is_graded_by_task or self.is_graded_by_sdk

    @property
    def model_name(self) -> str:
        """The model that a native agent asks for; the rollout's own choice wins."""
        return str((self.request.metadata or {}).get("harbor_model") or self.options.model_name)

    @property
    def grader_timeout_sec(self) -> float | None:
        """The SDK grader's deadline, or that of the task's own tests, which always have one."""
        given = self.request.grader_timeout_sec
        if not self.task.has_tests or given is not None:
            return given
        config = self.task.config
        steps = [step.verifier.timeout_sec for step in config.steps or []]
        return max([config.verifier.timeout_sec, *(sec for sec in steps if sec is not None)])
