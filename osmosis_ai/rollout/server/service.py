"""The server's life without HTTP: what it consists of while it runs, and how it ends."""

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from osmosis_ai.rollout.backend.base import ExecutionBackend
from osmosis_ai.rollout.backend.gateway import BackendGateway
from osmosis_ai.rollout.server import upkeep
from osmosis_ai.rollout.server.admitter import Admitter
from osmosis_ai.rollout.server.callbacks import CallbackKind, CallbackOutbox
from osmosis_ai.rollout.server.context import ServerContext
from osmosis_ai.rollout.server.errors import RefusedError
from osmosis_ai.rollout.server.queries import RolloutQueries
from osmosis_ai.rollout.server.remotes import Remotes
from osmosis_ai.rollout.server.runner import Runner
from osmosis_ai.rollout.server.settings import Settings
from osmosis_ai.rollout.server.shutdown import drain
from osmosis_ai.rollout.server.signals import ending_gracefully
from osmosis_ai.rollout.server.store import open_store
from osmosis_ai.rollout.server.takeover import Takeover
from osmosis_ai.rollout.trajectory.report import TrajectoryReport
from osmosis_ai.telemetry.telemetry import Telemetry

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Parts:
    """What answers requests while a server runs."""

    context: ServerContext
    runner: Runner
    admitter: Admitter
    queries: RolloutQueries
    remotes: Remotes


class RolloutService:
    """Serves a backend within ``running()``.

    Attributes:
        ending: set when rollouts have ended and callers need not wait any more.
    """

    def __init__(self, backend: ExecutionBackend, settings: Settings, telemetry: Telemetry) -> None:
        self.settings = settings
        self._backend = backend
        self._telemetry = telemetry
        self._parts: Parts | None = None
        self._draining: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self.ending = asyncio.Event()

    @property
    def parts(self) -> Parts:
        """What answers requests.

        Raises:
            RefusedError: 503, the server does not run.
        """
        if self._parts is None:
            raise RefusedError(503, "the server is not running")
        return self._parts

    @property
    def accepting(self) -> bool:
        """Whether new rollouts are admitted."""
        return self._parts is not None and self._parts.admitter.accepting

    @property
    def active(self) -> int:
        """How many rollouts run here."""
        return 0 if self._parts is None else len(self._parts.runner.tasks)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Accept rollouts within the block; leaving it waits for, then ends, those in flight.

        Raises:
            StoreError: the store cannot be used; the text says why.
        """
        async with self._opened() as context:
            runner = Runner(context)
            takeover = Takeover(context, runner)
            remotes = Remotes(context, self._cancel_here)
            admitter = Admitter(context, runner)
            queries = RolloutQueries(context, runner, remotes)
            self._parts = Parts(context, runner, admitter, queries, remotes)
            await self._backend.start()
            async with context.outbox.running(), asyncio.TaskGroup() as group:
                # A SQLite store is held by one server: whoever had it before has ended.
                settings = self.settings
                await takeover.claim(settings.takeover_sec if settings.shared else 0.0)
                upkeeping: list[Callable[[], Awaitable[None]]] = [
                    partial(upkeep.sample_statuses, context, runner),
                    partial(upkeep.prune, context),
                    partial(upkeep.keep_alive, context, takeover, runner),
                    partial(upkeep.sweep, context, takeover, runner, admitter),
                ]
                if settings.shared:
                    upkeeping.append(partial(context.store.feed.follow, remotes.on_events))
                background = [group.create_task(upkeep.persistently(w)) for w in upkeeping]
                try:
                    with ending_gracefully(partial(self._on_signal, group)):
                        yield
                    await self._end(group)
                finally:
                    for task in background:
                        task.cancel()
                    await runner.abandon()
            self._parts = None

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[ServerContext]:
        """What the parts share, open for the block."""
        settings, server_id = self.settings, uuid.uuid4().hex
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._telemetry.running())
            store = await stack.enter_async_context(open_store(settings.store_url, settings.keys()))
            gateway = await stack.enter_async_context(self._backend.gateway or BackendGateway())
            await store.beat(server_id, first=True)
            callbacks = store.callbacks(server_id)
            yield ServerContext(
                server_id=server_id,
                settings=settings,
                backend=self._backend,
                gateway=gateway,
                store=store,
                callbacks=callbacks,
                outbox=CallbackOutbox(callbacks, on_report=self._on_report),
                telemetry=self._telemetry,
            )
            await store.leave(server_id)

    def _on_signal(self, group: asyncio.TaskGroup, end_process: Callable[[], None]) -> None:
        """The first signal begins the end, the next cuts the waiting short."""
        if self._draining is not None:
            logger.warning("Second signal: rollouts are cancelled now")
            self._hurry.set()
            return
        logger.info("Shutting down: no rollouts are accepted any more")
        self._begin_end(group).add_done_callback(lambda _: end_process())

    async def _end(self, group: asyncio.TaskGroup) -> None:
        await self._begin_end(group)
        await self.parts.runner.tasks.wait(None)
        await self._backend.shutdown()

    def _begin_end(self, group: asyncio.TaskGroup) -> asyncio.Task[None]:
        """Admit no more rollouts, and drain those in flight, once."""
        self.parts.admitter.accepting = False
        if self._draining is None:
            self._draining = group.create_task(self._drain())
        return self._draining

    async def _drain(self) -> None:
        parts = self.parts
        await parts.admitter.close()
        await drain(parts.runner, self.settings.grace_sec, self._hurry)
        self.ending.set()
        parts.remotes.close()

    async def _cancel_here(self, rollout_id: str) -> None:
        """Somebody asked another server to cancel what runs here."""
        run = self.parts.runner.find(rollout_id)
        if run is None:
            return
        try:
            await self.parts.runner.cancel(run)
        except Exception:
            logger.exception("Rollout %s: the backend could not cancel it", rollout_id)

    async def _on_report(
        self, rollout_id: str, kind: CallbackKind, report: TrajectoryReport
    ) -> None:
        run = self.parts.runner.find(rollout_id)
        if run is not None:
            run.report = report
        else:
            logger.warning(
                "Rollout %s: the report in the answer to its %s callback came when the rollout had "
                "ended, so its trajectory lacks it",
                rollout_id,
                kind,
            )
