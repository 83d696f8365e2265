"""Doing the slow, once-only work before the first rollout asks for it."""

import logging
import os
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from enum import StrEnum
from typing import Any

from harbor_backend.places.place import Place
from harbor_backend.program.program import Program
from harbor_backend.trial.task_folder import TaskFolder

logger = logging.getLogger(__name__)

PREWARM_ENV = "_OSMOSIS_HARBOR_PREWARM"
TASK_IDS_ENV = "_OSMOSIS_PREWARM_TASK_IDS"

type Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]


class PrewarmMode(StrEnum):
    """What is made ready: everything but verified tasks, everything, or nothing."""

    AUTO = "auto"
    FULL = "full"
    HEALTHCHECK = "healthcheck"
    OFF = "off"


def parse_mode(value: PrewarmMode | str | bool | None) -> PrewarmMode:
    """Return the mode that an argument or environment variable means.

    Raises:
        ValueError: it is none of the documented spellings.
    """
    if value is None or value is True or value in {"1", "yes", "on", "true"}:
        return PrewarmMode.AUTO
    if value is False or value in {"0", "no", "false"}:
        return PrewarmMode.OFF
    try:
        return PrewarmMode(value)
    except ValueError:
        known = ", ".join(mode.value for mode in PrewarmMode)
        raise ValueError(f"prewarm={value!r} must be one of {known}, or a boolean") from None


class Prewarm:
    """Builds the runtime, and the images of the tasks that will be run.

    A task that cannot be made ready is recorded in ``failed`` and logged; its
    rollouts fail with the same message. When all fail, so does the start.
    """

    def __init__(
        self,
        program: Program,
        tasks: TaskFolder,
        place: Place,
        mode: PrewarmMode | str | bool | None,
        verified: bool | Collection[str],
    ) -> None:
        if isinstance(verified, str):
            raise TypeError(f"verified_tasks={verified!r} must be a bool or a collection of ids")
        self._program = program
        self._tasks = tasks
        self._place = place
        self._mode = None if mode is None else parse_mode(mode)
        self._verified = verified
        self.failed: dict[str, str] = {}
        self.summary: dict[str, Any] | None = None

    async def run(
        self,
        task_ids: Collection[str] | None = None,
        prewarm: PrewarmMode | str | bool | None = None,
    ) -> dict[str, Any]:
        """Make the runtime and the tasks' images; returns a summary.

        Raises:
            RuntimeError: not one of several tasks, or not the only one, could be
                made ready; the text holds each reason.
        """
        mode = (
            parse_mode(prewarm)
            if prewarm is not None
            else self._mode or parse_mode(os.environ.get(PREWARM_ENV))
        )
        if mode is PrewarmMode.OFF:
            self.summary = {"mode": mode.value, "total": 0}
            return self.summary
        await self._program.runtime()
        await self._place.prepare()
        chosen = self._chosen(task_ids)
        ready, skipped = 0, 0
        for task_id in chosen:
            if mode is PrewarmMode.AUTO and self._is_verified(task_id):
                skipped += 1
                continue
            try:
                await self._prepare(task_id)
                ready += 1
                self.failed.pop(task_id, None)
            except Exception as exc:
                logger.warning("Task %s cannot be made ready: %s", task_id, exc)
                self.failed[task_id] = str(exc)
        self.summary = {
            "mode": mode.value,
            "total": len(chosen),
            "succeeded": ready,
            "skipped_verified": skipped,
            "failed": len(self.failed),
            "failed_tasks": dict(self.failed),
        }
        if self.failed and not ready and not skipped:
            reasons = "; ".join(f"{task}: {reason}" for task, reason in self.failed.items())
            raise RuntimeError(f"No task could be made ready: {reasons}")
        return self.summary

    def lifespan(
        self,
        task_ids: Collection[str] | None = None,
        prewarm: PrewarmMode | str | bool | None = None,
    ) -> Lifespan:
        """Return a lifespan for a server: warm up before it serves, shut down after."""

        @asynccontextmanager
        async def lifespan(app: Any) -> AsyncIterator[None]:
            await self.run(task_ids, prewarm)
            yield

        return lifespan

    def _chosen(self, task_ids: Collection[str] | None) -> list[str]:
        if self._tasks.is_template:
            return self._tasks.ids
        if task_ids is None and os.environ.get(TASK_IDS_ENV):
            task_ids = os.environ[TASK_IDS_ENV].strip("[]").replace('"', "").split(",")
        found = self._tasks.ids
        if task_ids is None:
            return found
        wanted = {task_id.strip() for task_id in task_ids}
        return [task_id for task_id in found if task_id in wanted]

    def _is_verified(self, task_id: str) -> bool:
        return self._verified if isinstance(self._verified, bool) else task_id in self._verified

    async def _prepare(self, task_id: str) -> None:
        files = self._tasks.files(task_id)
        runtime = (await self._program.runtime()).path if self._program.needs_runtime else None
        await self._place.of(files).prepare_task(files, runtime)
