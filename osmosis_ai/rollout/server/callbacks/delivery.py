"""Decides what follows from an attempt: delivered, given up, or tried again later."""

import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from osmosis_ai.rollout.server.callbacks.attempts import Attempts, CallbackGoneError, ClosingError
from osmosis_ai.rollout.server.callbacks.entries import CallbackKind, Pending
from osmosis_ai.rollout.server.callbacks.limits import OutboxLimits
from osmosis_ai.rollout.server.callbacks.queue import Posted
from osmosis_ai.rollout.server.callbacks.sender import RefusedCallbackError, UndeliveredError
from osmosis_ai.rollout.server.callbacks.sleep import WakeableSleep
from osmosis_ai.rollout.server.callbacks.store import CallbackStore
from osmosis_ai.rollout.server.callbacks.urls import origin
from osmosis_ai.rollout.trajectory.report import TrajectoryReport

logger = logging.getLogger(__name__)

type ReportHook = Callable[[str, CallbackKind, TrajectoryReport], Awaitable[None]]

STORE_PAUSE_SEC = 1.0


class Delivery:
    """Brings single callbacks forward and writes down how far they came."""

    def __init__(
        self,
        store: CallbackStore,
        limits: OutboxLimits,
        attempts: Attempts,
        pauses: WakeableSleep,
        on_report: ReportHook | None,
    ) -> None:
        self._store = store
        self._limits = limits
        self._attempts = attempts
        self._pauses = pauses
        self._on_report = on_report

    async def wait(self, entry: Pending) -> None:
        """Wait until its next attempt is due, or its receiver was seen to work again.

        Whatever is seen, a callback is not tried more often than every
        ``later_pause_sec``: its receiver may refuse this one only.
        """
        # The time may have been set by another machine's clock.
        pause = min(entry.next_attempt_at - time.time(), self._limits.longest_pause_sec * 1.2)
        if pause <= 0:
            return
        least = min(pause, self._limits.later_pause_sec)
        await self._pauses.sleep(least)
        if pause > least and not self._attempts.closing:
            await self._pauses.sleep(pause - least, origin(entry.url))

    async def advance(self, entry: Pending) -> Posted | Pending:
        """Try a round, or once if it had its round; returns its end, or how it waits now.

        Raises:
            ClosingError: the outbox closes.
        """
        tried = 1

        async def pause(seconds: float) -> None:
            nonlocal tried
            tried += 1
            await self._pauses.sleep(seconds)

        try:
            if entry.attempts == 0:
                report = await self._attempts.several(entry, pause)
            else:
                report = await self._attempts.once(entry)
        except RefusedCallbackError as exc:
            return await self._give_up(entry, str(exc))
        except CallbackGoneError:
            return Posted("failed", "it is not in the store any more")
        except UndeliveredError as exc:
            return await self._put_off(replace(entry, attempts=entry.attempts + tried), exc)
        return await self._taken(entry, report)

    async def _taken(self, entry: Pending, report: TrajectoryReport | None) -> Posted:
        await self._written(lambda: self._store.delivered(entry.rollout_id, entry.kind))
        self._pauses.wake(origin(entry.url))
        if report is not None and self._on_report is not None:
            try:
                await self._on_report(entry.rollout_id, entry.kind, report)
            except Exception:
                logger.exception("Rollout %s: a trajectory report is lost", entry.rollout_id)
        return Posted("delivered", report=report)

    async def _give_up(self, entry: Pending, problem: str) -> Posted:
        logger.error(
            "Rollout %s: its %s callback is given up: %s", entry.rollout_id, entry.kind, problem
        )
        await self._written(lambda: self._store.failed(entry.rollout_id, entry.kind, problem))
        return Posted("failed", problem)

    async def _put_off(self, entry: Pending, error: UndeliveredError) -> Posted | Pending:
        limits, now = self._limits, time.time()
        ends = entry.created_at + limits.max_age_sec
        if now >= ends:
            return await self._give_up(entry, f"undelivered for too long; the last time {error}")
        doublings = min(max(0, entry.attempts - limits.round_attempts), 30)
        pause = max(limits.later_pause_sec * 2**doublings, error.retry_after_sec)
        # Spread, or thousands of callbacks to one restarted trainer would come together.
        due = now + min(pause, limits.longest_pause_sec) * random.uniform(0.8, 1.2)
        entry = replace(entry, next_attempt_at=min(due, ends))
        logger.log(
            logging.INFO if doublings else logging.WARNING,
            "Rollout %s: its %s callback waits %.0f s after %d attempts: %s",
            entry.rollout_id, entry.kind, entry.next_attempt_at - now, entry.attempts, error,
        )  # fmt: skip
        try:
            await self._store.record_attempt(
                entry.rollout_id,
                entry.kind,
                attempts=entry.attempts,
                next_attempt_at=entry.next_attempt_at,
                problem=str(error),
            )
        except Exception:
            # Only a restart would miss it, and begin with a new round.
            logger.exception("Rollout %s: an attempt could not be stored", entry.rollout_id)
        return entry

    async def _written(self, write: Callable[[], Awaitable[None]]) -> None:
        """Write what must not be forgotten, or the callback would be sent once more."""
        while True:
            try:
                return await write()
            except Exception:
                logger.exception("The end of a callback could not be stored; trying again")
            if self._attempts.closing:
                raise ClosingError
            await self._pauses.sleep(STORE_PAUSE_SEC)
