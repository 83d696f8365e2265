"""What a caller hears of a rollout while it runs, and sees afterwards."""

from dataclasses import dataclass, field
from typing import Any, Literal

from osmosis_ai.rollout import ExecutionBackend, ExecutionOutcome, ExecutionResult, RolloutStatus
from tests.conformance.compare import comparable_result

type PhaseName = Literal["workflow", "grader"]


@dataclass(frozen=True)
class Call:
    """A callback: the phase it tells of, the result it brought, the rollout's status just then."""

    phase: PhaseName
    result: dict[str, Any]
    status: str

    @property
    def told(self) -> tuple[str, str, str]:
        """The call in short, with no more of the result than its status."""
        return self.phase, self.result["status"], self.status


@dataclass
class Listener:
    """Both callbacks of one rollout; those in ``raising`` raise when they have listened."""

    backend: ExecutionBackend
    rollout_id: str
    raising: frozenset[str] = frozenset()
    calls: list[Call] = field(default_factory=list)

    async def workflow(self, result: ExecutionResult) -> None:
        """Pass it as ``on_workflow_complete``."""
        self._listen("workflow", result)

    async def grader(self, result: ExecutionResult) -> None:
        """Pass it as ``on_grader_complete``."""
        self._listen("grader", result)

    def status(self) -> str:
        """The rollout's status; empty for one that the backend does not know."""
        known = self.backend.rollout_status(self.rollout_id)
        return "" if known is None else known["status"].value

    def _listen(self, phase: PhaseName, result: ExecutionResult) -> None:
        self.calls.append(Call(phase, comparable_result(result), self.status()))
        if phase in self.raising:
            raise ConnectionError(f"nobody hears of the {phase}")


def assert_told(calls: list[Call], outcome: ExecutionOutcome, ended: dict[str, Any] | None) -> None:
    """Assert that an outcome was told phase by phase, once, and is what the backend remembers."""
    phases = {"workflow": outcome.workflow, "grader": outcome.grader}
    results = {name: found for name, found in phases.items() if found is not None}
    assert [(call.phase, call.result) for call in calls] == [
        (name, comparable_result(result)) for name, result in results.items()
    ]
    assert [call.status for call in calls[1:]] == ["grading"] * (len(calls) - 1)
    assert calls[0].status in {"queued", "running"}
    result = outcome.result
    assert ended == {
        "status": RolloutStatus(result.status),
        "reward": None if result.sample is None else result.sample.reward,
        "err_message": result.err_message,
    }
