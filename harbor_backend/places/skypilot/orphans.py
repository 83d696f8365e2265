"""What Harbor's own environment may leave of a trial, looked for by the names that it makes.

It logs an ending that failed and goes on, and a creation whose caller is
cancelled or out of time goes on in the cluster without anybody knowing.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from harbor_backend.core.trial import Trial
from harbor_backend.places.skypilot.errors import SkypilotError
from harbor_backend.places.skypilot.names import is_of_trial
from harbor_backend.places.skypilot.terminator import Terminator

_LOOK_SEC = 2.0
_LATE_SEC = 600.0
"""How long a creation that nobody waits for is waited for."""

_CLOSING_SEC = 30.0
"""The same while the backend shuts down; the reaper of a later process takes what comes then."""


class OrphanSweeper:
    """Ends what is left of the trials of one backend; ``terminator`` holds what takes longer."""

    def __init__(self, terminator: Terminator) -> None:
        self._terminator = terminator
        self._closing: float | None = None

    @asynccontextmanager
    async def of_trial(self, trial: Trial) -> AsyncIterator[None]:
        """Let the trial run in the block, and end what it leaves, however it ends."""
        try:
            yield
        except BaseException:
            self._terminator.keep(self._search(trial), f"orphans of {trial.spec.name}")
            raise
        if not await self._look(trial) and trial.sandbox_wait:
            self._terminator.keep(self._search(trial), f"orphans of {trial.spec.name}")

    def close(self) -> None:
        """From now on, search for a short while only."""
        self._closing = time.monotonic()

    async def _search(self, trial: Trial) -> None:
        began = time.monotonic()
        while not await self._look(trial) and trial.sandbox_wait:
            now = time.monotonic()
            if now > began + _LATE_SEC or (self._closing and now > self._closing + _CLOSING_SEC):
                return
            await asyncio.sleep(_LOOK_SEC)

    async def _look(self, trial: Trial) -> bool:
        """End what is there, and note what could not be ended; returns whether anything was."""
        try:
            found = await self._terminator.end_listed(partial(is_of_trial, trial=trial.spec.name))
        except SkypilotError as exc:
            trial.results.note(f"Whether Harbor's environment left a sandbox is not known: {exc}")
            return False
        for name, problem in found.items():
            if problem is not None:
                trial.results.note(
                    f"Sandbox {name} was not terminated ({problem}); the reaper takes it"
                )
        return bool(found)
