"""Lives of rollouts: watched from the queue to the end, cancelled on the way, told to callbacks."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from osmosis_ai.common.observer import QUEUE, ModelCall, observed_by
from osmosis_ai.rollout import ExecutionBackend, ExecutionOutcome, ExecutionRequest
from tests.conformance.compare import comparable
from tests.conformance.listening import Listener
from tests.conformance.model import LABEL, PROMPT

_REACHED_SEC = 120.0


@dataclass(frozen=True)
class Watched:
    """What was seen of a rollout.

    ``told`` are the callbacks: phase, result's status, rollout's status. ``seen`` is
    the status when it was cancelled, ``raised`` what ``execute`` raised, ``ended``
    what the backend remembers.
    """

    told: list[tuple[str, str, str]]
    seen: str | None = None
    disposition: str | None = None
    raised: str | None = None
    ended: dict[str, Any] | None = None
    outcome: dict[str, Any] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Life:
    """One rollout's life, on a backend with one slot.

    It is cancelled as the telemetry's phase ``cancelled_in`` begins: through the
    backend, or with its task when that is ``from_outside``. The other fields are
    those of ``Case``.
    """

    id: str
    workflow: str
    expected: Watched
    grader: str | None = None
    request: dict[str, Any] = field(default_factory=dict)
    cancelled_in: str | None = None
    from_outside: bool = False
    raising: frozenset[str] = frozenset()
    workflow_config: str | None = None
    grader_config: str | None = None


class _Phases:
    """An observer of one rollout on which a test can wait."""

    def __init__(self) -> None:
        self._began: dict[str, asyncio.Event] = {}

    async def reached(self, phase: str) -> None:
        async with asyncio.timeout(_REACHED_SEC):
            await self._event(phase).wait()

    def begin(self, phase: str) -> None:
        self._event(phase).set()

    def end(self, error: str | None = None, *, seconds_ago: float = 0.0) -> None:
        pass

    def model_call(self, call: ModelCall) -> None:
        pass

    def _event(self, phase: str) -> asyncio.Event:
        return self._began.setdefault(phase, asyncio.Event())


async def watch(backend: ExecutionBackend, life: Life) -> Watched:
    """Live it on a backend of its own."""
    rollout = _Rollout(backend, life.id, life)
    async with asyncio.TaskGroup() as group:
        if life.cancelled_in == QUEUE:
            first = _Rollout(backend, f"{life.id}-before", life)
            group.create_task(first.run())
            await first.phases.reached("environment")
        task = group.create_task(rollout.run())
        seen = disposition = None
        if life.cancelled_in is not None:
            await rollout.phases.reached(life.cancelled_in)
            seen = rollout.listener.status()
            if life.from_outside:
                task.cancel()
            else:
                disposition = (await backend.cancel_rollouts(ids=[life.id]))[life.id]
            await asyncio.wait([task])
            await backend.cancel_rollouts(all=True)
    ended = task.result()
    finished = isinstance(ended, ExecutionOutcome)
    return Watched(
        told=[call.told for call in rollout.listener.calls],
        seen=seen,
        disposition=disposition,
        raised=None if finished else f"{type(ended).__name__}: {ended}",
        ended=backend.rollout_status(life.id),
        outcome=comparable(ended) if isinstance(ended, ExecutionOutcome) else None,
    )


class _Rollout:
    def __init__(self, backend: ExecutionBackend, rollout_id: str, life: Life) -> None:
        self._backend = backend
        self._request = ExecutionRequest.model_validate(
            {"prompt": PROMPT, "label": LABEL, **life.request, "id": rollout_id}
        )
        self.listener = Listener(backend, rollout_id, life.raising)
        self.phases = _Phases()

    async def run(self) -> ExecutionOutcome | BaseException:
        """Run it to its end, whatever that is."""
        callbacks = (self.listener.workflow, self.listener.grader)
        with observed_by(self.phases):
            try:
                return await self._backend.execute(self._request, *callbacks)
            except (ConnectionError, asyncio.CancelledError) as exc:
                return exc
