"""Ending sandboxes for certain: retried, and what still fails is kept in mind."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from harbor_backend.core.trial import Lendable
from harbor_backend.places.skypilot.errors import SkypilotError
from harbor_backend.places.skypilot.listing import Listed, list_sandboxes, terminate_listed

logger = logging.getLogger(__name__)

_ATTEMPTS = 4
_ATTEMPT_SEC = 60.0
_FIRST_WAIT_SEC = 0.25
_LONGEST_WAIT_SEC = 10.0
_SETTLE_SEC = 120.0


class Terminator:
    """The sandboxes of one backend that have to go, until they are gone.

    ``left`` names those that could not be ended; a later reaper takes them, and
    their lifetime bounds them anyway.
    """

    def __init__(self, sdk: Any) -> None:
        self._sdk = sdk
        self._handles: dict[str, Any] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def left(self) -> list[str]:
        """Names of sandboxes that could not be ended so far."""
        return sorted(self._handles)

    async def end(self, name: str, sandbox: Any) -> str | None:
        """Terminate a sandbox; returns ``None``, or why it may still be there."""
        problem: str | None = None
        try:
            async for attempt in AsyncRetrying(
                stop=stop_after_attempt(_ATTEMPTS),
                wait=wait_exponential(_FIRST_WAIT_SEC, max=_LONGEST_WAIT_SEC),
                retry=retry_if_exception_type(Exception),
                reraise=True,
            ):
                with attempt:
                    async with asyncio.timeout(_ATTEMPT_SEC):
                        await terminate_listed(self._sdk, Listed(name, sandbox))
        except (SkypilotError, TimeoutError) as exc:
            cause = exc.__cause__ or exc
            problem = f"{type(cause).__name__}: {cause}"
            if await self._is_gone(name):
                problem = None
        if problem is None:
            self._handles.pop(name, None)
            return None
        self._handles[name] = sandbox
        logger.warning("Sandbox %s was not terminated: %s", name, problem)
        return problem

    def ending(self, name: str, sandbox: Any) -> "asyncio.Task[str | None]":
        """``end`` as a task that goes on when its caller is cancelled; ``settle`` awaits it."""
        return self.keep(self.end(name, sandbox), f"end {name}")

    async def end_listed(self, is_meant: Callable[[str], bool]) -> dict[str, str | None]:
        """Terminate the sandboxes with such a name; returns what ``end`` says of each.

        Raises:
            SkypilotError: they cannot be listed.
        """
        meant = [box for box in await list_sandboxes(self._sdk) if is_meant(box.name)]
        said = await asyncio.gather(*(self.end(box.name, box.entry) for box in meant))
        return dict(zip((box.name for box in meant), said, strict=True))

    async def end_by_name(self, name: str) -> None:
        """Terminate a sandbox of which no handle was ever given, if there is one."""
        try:
            await self.end_listed(name.__eq__)
        except SkypilotError as exc:
            logger.warning("A sandbox %s may have been left: %s", name, exc)

    def adopt(self, name: str, creation: "asyncio.Task[Any]") -> None:
        """Take over a creation whose caller is gone: what comes of it is terminated."""
        self.keep(self._end_creation(name, creation), f"end {name}")

    def keep[T](self, work: Coroutine[Any, Any, T], name: str) -> "asyncio.Task[T]":
        """Let this go on by itself; ``settle`` waits for it."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def settle(self) -> None:
        """Wait for what goes on, and try once more to end what is left; each for a while."""
        await self._wait()
        for name, sandbox in list(self._handles.items()):
            self.ending(name, sandbox)
        await self._wait()

    async def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        tasks = [task for task in self._tasks if task.get_loop() is loop]
        if tasks:
            await asyncio.wait(tasks, timeout=_SETTLE_SEC)

    async def _end_creation(self, name: str, creation: "asyncio.Task[Any]") -> None:
        done = (await asyncio.gather(creation, return_exceptions=True))[0]
        if isinstance(done, BaseException):
            await self.end_by_name(name)
        elif done is not None:
            await self.end(name, done)

    async def _is_gone(self, name: str) -> bool:
        try:
            return all(sandbox.name != name for sandbox in await list_sandboxes(self._sdk))
        except SkypilotError:
            return False


TERMINATOR = Lendable[Terminator]("terminator")
