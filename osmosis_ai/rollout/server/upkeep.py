"""What a server does beside its rollouts, at intervals."""

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

from osmosis_ai.rollout.artifacts import rollout_dir
from osmosis_ai.rollout.server.admitter import Admitter
from osmosis_ai.rollout.server.context import ServerContext
from osmosis_ai.rollout.server.run import IN_BACKEND
from osmosis_ai.rollout.server.runner import Runner
from osmosis_ai.rollout.server.store import StoreError
from osmosis_ai.rollout.server.store.retention import BATCH
from osmosis_ai.rollout.server.takeover import Takeover
from osmosis_ai.rollout.types.status import RolloutStatus

logger = logging.getLogger(__name__)

PRUNE_SEC = 60.0
SWEEP_SEC = 30.0
SAMPLE_SEC = 1.0
"""How often backends are asked that do not report changes by themselves."""

RESTART_SEC = 1.0

_LOOKED_AT_ONCE = 200

_BEATS = 6
"""Signs of life within the time after which a server is taken for dead."""


async def persistently(work: Callable[[], Awaitable[None]]) -> None:
    """Do work that never ends; an error that nobody foresaw is logged and it begins again."""
    while True:
        try:
            await work()
        except Exception:
            logger.exception("The server's upkeep failed and begins again")
        await asyncio.sleep(RESTART_SEC)


async def sample_statuses(context: ServerContext, runner: Runner) -> None:
    """Look at the rollouts of a backend that does not push their status."""
    while True:
        await asyncio.sleep(SAMPLE_SEC)
        for number, run in enumerate(runner.runs, 1):
            if number % _LOOKED_AT_ONCE == 0:
                await asyncio.sleep(0)
            if not run.progress.pushed:
                try:
                    seen = (context.backend.rollout_status(run.id) or {}).get("status")
                except Exception:
                    logger.exception("Rollout %s: the backend has no status for it", run.id)
                    continue
                if seen in IN_BACKEND:
                    run.progress.set_status(RolloutStatus(seen))


async def prune(context: ServerContext) -> None:
    """Forget what is not to be kept, and say what went."""
    while True:
        await asyncio.sleep(PRUNE_SEC)
        try:
            while await _prune_once(context) >= BATCH:
                pass
        except StoreError as exc:
            logger.warning("Nothing was pruned now: %s", exc)


async def sweep(
    context: ServerContext, takeover: Takeover, runner: Runner, admitter: Admitter
) -> None:
    """Look for rollouts whose admission was stored although the store did not say so."""
    before: set[str] = set()
    while True:
        await asyncio.sleep(SWEEP_SEC)
        try:
            known = {run.id for run in runner.runs} | admitter.underway
            strays = set(await context.store.unfinished(context.server_id)) - known
            # Twice, because the store may be read between an end and its forgetting.
            if again := sorted(strays & before):
                await takeover.sweep(again)
            before = strays
        except StoreError as exc:
            logger.warning("The store was not swept now: %s", exc)


async def _prune_once(context: ServerContext) -> int:
    settings = context.settings
    pruned = await context.store.prune(settings.keep)
    if pruned.results or pruned.records:
        some = ", ".join(pruned.ids[:5]) + (", …" if len(pruned.ids) > 5 else "")
        logger.info(
            "Pruned %d result(s) past their retention and %d record(s)%s",
            pruned.results, pruned.records, f": {some}" if some else "",
        )  # fmt: skip
    if pruned.ids and not settings.keep_files:
        await asyncio.to_thread(_remove_files, settings.root, pruned.ids)
    return max(pruned.results, pruned.records)


def _remove_files(root: Path, ids: tuple[str, ...]) -> None:
    for rollout_id in ids:
        try:
            shutil.rmtree(rollout_dir(root, rollout_id))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as exc:
            logger.warning("Rollout %s: its files were not removed: %s", rollout_id, exc)


async def keep_alive(context: ServerContext, takeover: Takeover, runner: Runner) -> None:
    """Give signs of life, and take over from servers that give none.

    The only server of a store does so too: the next one learns from it when this
    one was there last.
    """
    store, server_id = context.store, context.server_id
    takeover_sec = context.settings.takeover_sec
    while True:
        await asyncio.sleep(takeover_sec / _BEATS)
        try:
            if not await store.beat(server_id):
                logger.error("This server was taken for dead, and others have its rollouts")
                await store.beat(server_id, first=True)
                await _drop_lost(context, runner)
            if store.shared:
                await takeover.claim(takeover_sec)
        except StoreError as exc:
            logger.warning("No sign of life could be given: %s", exc)


async def _drop_lost(context: ServerContext, runner: Runner) -> None:
    runs = runner.runs
    ours = set(await context.store.unfinished(context.server_id))
    for run in runs:
        if run.id not in ours and not run.watch.finished:
            run.lost = True
            await runner.cancel(run)
