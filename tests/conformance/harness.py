"""What a backend offers to be tested by the suite."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from local_backend import LocalBackend
from osmosis_ai.rollout import (
    AgentWorkflowConfig,
    ConcurrencyConfig,
    ExecutionBackend,
    ExecutionOutcome,
)
from osmosis_ai.rollout.artifacts import ARTIFACTS
from tests.conformance.life import Life, Watched, watch
from tests.conformance.listening import Call, Listener
from tests.conformance.model import Case, path


class Wired(Protocol):
    """The import strings that make a backend; see ``Case``."""

    @property
    def workflow(self) -> str: ...
    @property
    def grader(self) -> str | None: ...
    @property
    def workflow_config(self) -> str | None: ...
    @property
    def grader_config(self) -> str | None: ...


@dataclass(frozen=True)
class Ran:
    """What a case did on one backend; ``ended`` is what the backend remembers of its end."""

    outcome: ExecutionOutcome
    artifacts: dict[str, bytes] | None
    calls: list[Call]
    ended: dict[str, Any] | None


class BackendHarness(ABC):
    """Runs cases on one kind of backend.

    The artifact root is set through the environment by the test's fixture
    before a harness makes a backend.
    """

    name: str

    def __init__(self, artifact_root: Path) -> None:
        self.artifact_root = artifact_root

    @abstractmethod
    def backend(self, wired: Wired, slots: int | None = None) -> ExecutionBackend:
        """Return a new backend, for ``slots`` rollouts at once."""

    async def run(self, case: Case) -> Ran:
        """Run the case's executions in order; returns what came of the last one."""
        backend = self.backend(case)
        try:
            for request in case.requests():
                listener = Listener(backend, request.id)
                outcome = await backend.execute(request, listener.workflow, listener.grader)
            ended = backend.rollout_status(request.id)
        finally:
            await backend.shutdown()
        artifacts = None if case.artifacts is None else self._artifacts(request.id)
        return Ran(outcome, artifacts, listener.calls, ended)

    async def live(self, life: Life) -> Watched:
        """Run a rollout's life on a backend with one slot."""
        backend = self.backend(life, slots=1)
        try:
            return await watch(backend, life)
        finally:
            await backend.shutdown()

    def _artifacts(self, rollout_id: str) -> dict[str, bytes]:
        """Return a run's regular files, by path; links are not followed."""
        root = self.artifact_root / rollout_id / ARTIFACTS
        return {
            (directory / name).relative_to(root).as_posix(): (directory / name).read_bytes()
            for directory, _, names in root.walk(follow_symlinks=False)
            for name in names
            if (directory / name).is_file() and not (directory / name).is_symlink()
        }


class LocalHarness(BackendHarness):
    """LocalBackend, in the test's own process."""

    name = "local"

    def backend(self, wired: Wired, slots: int | None = None) -> ExecutionBackend:
        workflow = path(wired.workflow)
        assert workflow is not None
        config: AgentWorkflowConfig | str | None = path(wired.workflow_config)
        if slots is not None:
            assert config is None
            concurrency = ConcurrencyConfig(max_concurrent=slots)
            config = AgentWorkflowConfig(name="slots", concurrency=concurrency)
        return LocalBackend(
            workflow=workflow,
            workflow_config=config,
            grader=path(wired.grader),
            grader_config=path(wired.grader_config),
        )
