"""Ending sandboxes for certain: retried, and what still fails is kept in mind."""

import asyncio
import logging
from typing import Any

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from harbor_backend.skypilot.errors import SkypilotError
from harbor_backend.skypilot.listing import list_sandboxes, terminate_listed
from harbor_backend.skypilot.sdk import call

logger = logging.getLogger(__name__)

_ATTEMPTS = 4
_ATTEMPT_SEC = 60.0
_FIRST_WAIT_SEC = 0.25
_LONGEST_WAIT_SEC = 10.0
_SETTLE_SEC = 120.0


class Endings:
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
                        await call(sandbox.terminate, wait=True)
        except Exception as exc:  # the SDK's exceptions are not documented
            problem = f"{type(exc).__name__}: {exc}"
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
        return self._kept(asyncio.create_task(self.end(name, sandbox), name=f"end {name}"))

    async def end_by_name(self, name: str) -> None:
        """Terminate a sandbox of which no handle was ever given, if there is one."""
        try:
            for sandbox in await list_sandboxes(self._sdk):
                if sandbox.name == name:
                    await terminate_listed(self._sdk, sandbox)
        except SkypilotError as exc:
            logger.warning("A sandbox %s may have been left: %s", name, exc)

    def adopt(self, name: str, creation: "asyncio.Task[Any]") -> None:
        """Take over a creation whose caller is gone: what comes of it is terminated."""
        self._kept(asyncio.create_task(self._end_creation(name, creation), name=f"end {name}"))

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

    def _kept[T](self, task: "asyncio.Task[T]") -> "asyncio.Task[T]":
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

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
