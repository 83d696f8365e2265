"""The contract that every execution backend keeps."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from osmosis_ai.rollout.types.execution import ExecutionOutcome, ExecutionRequest, ExecutionResult

if TYPE_CHECKING:
    from osmosis_ai.rollout.backend.gateway import BackendGateway

type ResultCallback = Callable[[ExecutionResult], Awaitable[None]]


class ExecutionBackend(ABC):
    """Runs rollouts; the same request has the same outcome on every backend.

    Derive from ``LifecycleBackend`` to get all of this but the two phases.
    ``gateway`` is the backend's own, where its rollouts' model endpoints are
    opened; without one, the caller opens them on another.
    """

    gateway: "BackendGateway | None" = None

    @abstractmethod
    async def execute(
        self,
        request: ExecutionRequest,
        on_workflow_complete: ResultCallback | None = None,
        on_grader_complete: ResultCallback | None = None,
    ) -> ExecutionOutcome:
        """Run one rollout to its end.

        Each callback is awaited once, as its phase ends; the grader's not at
        all when nothing is graded. What one raises is raised at the rollout's
        end, and changes nothing about the rollout.

        Raises:
            DuplicateRolloutError: a rollout with this id is in flight.
            BackendClosedError: the backend was shut down.
        """

    async def start(self) -> None:  # noqa: B027 (overriding it is optional)
        """Prepare for rollouts; a server calls it once, before the first."""

    def has_capacity(self) -> bool:
        """Whether another rollout may be admitted now."""
        return True

    def rollout_status(self, rollout_id: str) -> dict[str, Any] | None:
        """Return ``{status, reward, err_message}``, or ``None`` when the id is not known."""
        return None

    async def cancel_rollouts(
        self, ids: Iterable[str] | None = None, prefix: str | None = None, all: bool = False
    ) -> dict[str, str]:
        """Cancel rollouts; returns a disposition per id."""
        return {}

    def health(self) -> dict[str, Any]:
        """Return a JSON-encodable report for ``/health``."""
        return {"status": "ok"}

    async def shutdown(self) -> None:  # noqa: B027 (overriding it is optional)
        """End what runs and release what is held. Idempotent."""
