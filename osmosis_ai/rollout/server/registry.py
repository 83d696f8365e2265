"""The rollouts that the server knows: those in flight, and results kept for a while."""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from hmac import compare_digest

from osmosis_ai.rollout.context import RolloutProgress
from osmosis_ai.rollout.server.auth import token_digest
from osmosis_ai.rollout.server.lease import Lease
from osmosis_ai.rollout.server.wire import encode_progress, encode_result
from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.rollout.types.status import RolloutStatus


@dataclass
class Rollout:
    """One admitted rollout.

    Attributes:
        fingerprint: equal for equal requests.
        nonce: what its token is made from.
        digest: SHA-256 of its token; the token itself is not kept.
        reported: the status that the caller was told last.
        task: the task that runs it.
        disposition: how a cancellation was answered, for when it is asked again.
    """

    id: str
    fingerprint: bytes
    nonce: bytes
    digest: bytes
    lease: Lease
    progress: RolloutProgress = field(default_factory=RolloutProgress)
    reported: RolloutStatus = RolloutStatus.QUEUED
    task: asyncio.Task[None] | None = None
    disposition: str | None = None
    _result: bytes | None = None

    @property
    def finished(self) -> bool:
        """Whether there is a result, which will not change any more."""
        return self._result is not None

    @property
    def status(self) -> RolloutStatus:
        """Where the rollout is."""
        return self.progress.status

    @property
    def body(self) -> bytes:
        """The answer to a poll, encoded."""
        return self._result or encode_progress(self.id, self.status)

    def opens_with(self, token: str) -> bool:
        """Whether ``token`` is the one of this rollout's lease."""
        return compare_digest(self.digest, token_digest(token))

    def finish(self, result: ExecutionResult) -> None:
        """Publish the result and wake who waits for it; the first result stays."""
        if not self.finished:
            self._result = encode_result(self.id, result)
            self.progress.set_status(result.status)


class Registry:
    """Rollouts by id, in memory. An ended one is kept ``retention_sec``, then forgotten."""

    def __init__(self, retention_sec: float) -> None:
        self._retention_sec = retention_sec
        self._rollouts: dict[str, Rollout] = {}
        self._ended: deque[tuple[float, str]] = deque()

    def find(self, rollout_id: str) -> Rollout | None:
        """The rollout with this id, in flight or kept."""
        self._forget()
        return self._rollouts.get(rollout_id)

    def matching(self, prefix: str) -> list[str]:
        """The ids that begin with ``prefix``, oldest first."""
        self._forget()
        return [known for known in self._rollouts if known.startswith(prefix)]

    def add(self, rollout: Rollout) -> None:
        """Take in a rollout whose id is free."""
        self._rollouts[rollout.id] = rollout

    def in_flight(self) -> list[Rollout]:
        """Rollouts whose task has not ended, finished or not."""
        return [r for r in self._rollouts.values() if r.task is not None and not r.task.done()]

    def task_ended(self, rollout: Rollout) -> None:
        """Begin the retention: not earlier, so no id is taken while its old task still runs."""
        now = asyncio.get_running_loop().time()
        self._ended.append((now + self._retention_sec, rollout.id))

    def _forget(self) -> None:
        now = asyncio.get_running_loop().time()
        while self._ended and self._ended[0][0] <= now:
            del self._rollouts[self._ended.popleft()[1]]
