"""What a backend offers to be tested by the suite."""

from abc import ABC, abstractmethod
from pathlib import Path

from local_backend import LocalBackend
from osmosis_ai.rollout import ExecutionBackend, ExecutionOutcome
from osmosis_ai.rollout.artifacts import ARTIFACTS
from tests.conformance.model import Case, path


class BackendHarness(ABC):
    """Runs cases on one kind of backend.

    The artifact root is set through the environment by the test's fixture
    before a harness makes a backend.
    """

    name: str

    def __init__(self, artifact_root: Path) -> None:
        self.artifact_root = artifact_root

    @abstractmethod
    def backend(self, case: Case) -> ExecutionBackend:
        """Return a new backend with the case's workflow, grader and configs."""

    async def execute(self, case: Case) -> ExecutionOutcome:
        """Run the case's executions in order; returns the last one's outcome."""
        backend = self.backend(case)
        try:
            outcomes = [await backend.execute(request) for request in case.requests()]
        finally:
            await backend.shutdown()
        return outcomes[-1]

    def artifacts(self, case: Case) -> dict[str, bytes]:
        """Return the last run's regular files, by path; links are not followed."""
        root = self.artifact_root / case.requests()[-1].id / ARTIFACTS
        return {
            (directory / name).relative_to(root).as_posix(): (directory / name).read_bytes()
            for directory, _, names in root.walk(follow_symlinks=False)
            for name in names
            if (directory / name).is_file() and not (directory / name).is_symlink()
        }


class LocalHarness(BackendHarness):
    """LocalBackend, in the test's own process."""

    name = "local"

    def backend(self, case: Case) -> ExecutionBackend:
        workflow = path(case.workflow)
        assert workflow is not None
        return LocalBackend(
            workflow=workflow,
            workflow_config=path(case.workflow_config),
            grader=path(case.grader),
            grader_config=path(case.grader_config),
        )
