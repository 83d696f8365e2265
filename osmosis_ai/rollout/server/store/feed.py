"""Follows the store's events, of this server and of others that share a PostgreSQL store."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial

from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from osmosis_ai.rollout.server.store.errors import StoreError
from osmosis_ai.rollout.server.store.events import Event
from osmosis_ai.rollout.server.store.tables import events
from osmosis_ai.rollout.server.store.writer import CHANNEL
from osmosis_ai.rollout.server.wakeup import Wakeup, within

logger = logging.getLogger(__name__)

LOOK_SEC = 1.0
"""How often events of other servers are looked for when no notification came."""

BATCH = 500


class Feed:
    """The events, and a way to wait for more of them."""

    def __init__(self, database: AsyncEngine) -> None:
        self._database = database
        self._more = Wakeup()

    def wake(self) -> None:
        """Say that there may be more events."""
        self._more.wake()

    async def last(self) -> int:
        """The number of the latest event; 0 when there is none."""
        async with self._database.connect() as connection:
            found = await connection.execute(select(func.max(events.c.seq)))
            return found.scalar() or 0

    async def first(self) -> int:
        """The number of the oldest event that is kept; 0 when there is none."""
        async with self._database.connect() as connection:
            found = await connection.execute(select(func.min(events.c.seq)))
            return found.scalar() or 0

    async def after(self, seq: int, limit: int = BATCH) -> Sequence[Event]:
        """The events that follow ``seq``, oldest first."""
        query = select(events).where(events.c.seq > seq).order_by(events.c.seq).limit(limit)
        async with self._database.connect() as connection:
            rows = (await connection.execute(query)).all()
        return [Event(row.seq, row.rollout_id, row.status, row.at) for row in rows]

    async def wait_after(self, seq: int, timeout_sec: float) -> Sequence[Event]:
        """The same, waiting for one to come; empty when none came in time."""
        deadline = asyncio.get_running_loop().time() + timeout_sec
        while True:
            more = self._more.next
            found = await self.after(seq)
            left = deadline - asyncio.get_running_loop().time()
            if found or left <= 0 or not await within(more, left):
                return found

    async def follow(self, on_events: Callable[[Sequence[Event]], Awaitable[None]]) -> None:
        """Tell of every event from now on, in order, until cancelled. For shared stores."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen(), name="osmosis-store-listener")
            seq: int | None = None
            while True:
                try:
                    if seq is None:
                        seq = await self.last()
                    found = await self.wait_after(seq, LOOK_SEC)
                    if found:
                        await on_events(found)
                        seq = found[-1].seq
                except (StoreError, SQLAlchemyError, OSError) as exc:
                    logger.warning("The store's events cannot be read now: %s", exc)
                    await asyncio.sleep(LOOK_SEC)

    async def _listen(self) -> None:
        """Wake up for the notifications of other servers' commits."""
        while True:
            try:
                async with AsyncExitStack() as stack:
                    connection = await stack.enter_async_context(self._database.connect())
                    raw = await connection.get_raw_connection()
                    driver = raw.driver_connection
                    assert driver is not None
                    lost = asyncio.Event()
                    driver.add_termination_listener(partial(_set, lost))
                    await driver.add_listener(CHANNEL, lambda *_: self.wake())
                    stack.push_async_callback(connection.invalidate)
                    self.wake()
                    await lost.wait()
            except (SQLAlchemyError, OSError) as exc:
                logger.info("The store's notifications were lost: %s", exc)
            await asyncio.sleep(LOOK_SEC)


def _set(event: asyncio.Event, *_: object) -> None:
    event.set()
