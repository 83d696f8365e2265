"""Sandboxes that stay after their trial, and the removal of all others."""

import logging
from pathlib import Path

from harbor_backend.admin import (
    COMPOSE,
    Engine,
    EngineError,
    SandboxRecord,
    instance_id,
    keep_sandbox,
    list_sandboxes,
    remove_sandboxes,
)
from osmosis_ai.cli.trials.choices import Keep
from osmosis_ai.cli.trials.results import Kept

logger = logging.getLogger(__name__)

_SHELLS = ("/bin/bash", "/usr/bin/bash")


class Keeper:
    """Decides after each trial of this process whether its sandboxes stay."""

    def __init__(self, engine: Engine, keep: Keep, passing_reward: float) -> None:
        self._engine = engine
        self._keep = keep
        self._passing_reward = passing_reward
        self._staying: set[str] = set()

    async def settle(self, rollout_id: str, reward: float | None) -> list[Kept]:
        """Keep or remove what a finished trial left; returns what stays."""
        if self._keep is Keep.NONE:
            return []
        try:
            return await self._settle(rollout_id, reward)
        except EngineError as exc:
            logger.warning("Sandboxes of %s cannot be kept or removed: %s", rollout_id, exc)
            return []

    async def _settle(self, rollout_id: str, reward: float | None) -> list[Kept]:
        mine = [s for s in await self._own() if s.rollout_id == rollout_id]
        passed = reward is not None and reward >= self._passing_reward
        if self._keep is Keep.FAILED and passed:
            await remove_sandboxes(self._engine, mine)
            return []
        return [await self._kept(sandbox) for sandbox in mine]

    async def sweep(self) -> None:
        """Remove what this process made and ``settle`` did not keep: of interrupted trials."""
        try:
            left = [s for s in await self._own() if s.container not in self._staying]
            await remove_sandboxes(self._engine, left)
        except EngineError as exc:
            logger.warning("Sandboxes may be left; `osmosis sandboxes ls` shows them: %s", exc)

    async def _own(self) -> list[SandboxRecord]:
        return [s for s in await list_sandboxes(self._engine) if s.instance == instance_id()]

    async def _kept(self, sandbox: SandboxRecord) -> Kept:
        kept = await keep_sandbox(self._engine, sandbox)
        self._staying.add(kept.container)
        await self._restore_mounts(kept)
        state = await self._start(kept) if kept.kind == COMPOSE else kept.state
        enter = f"docker exec -it {kept.name} {await self._shell(kept)}"
        if state != "running":
            enter = f"docker start {kept.name} && {enter}"
        return Kept(kept.name, state, enter)

    async def _start(self, sandbox: SandboxRecord) -> str:
        """Start a compose container again, which Harbor stops even where it keeps it."""
        try:
            await self._engine.start(sandbox.container)
        except EngineError as exc:
            logger.warning("Sandbox %s was kept but stays stopped: %s", sandbox.name, exc)
            return sandbox.state
        return "running"

    async def _restore_mounts(self, sandbox: SandboxRecord) -> None:
        """Make the mounted directories again that went away with the trial.

        Without them the engine neither starts the container nor copies from it.
        """
        if not self._engine.is_local:
            return
        record = await self._engine.inspect(sandbox.container)
        sources = [Path(m["Source"]) for m in record["Mounts"] if m["Type"] == "bind"]
        try:
            for source in sources:
                source.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            logger.warning("Sandbox %s lacks a mounted directory: %s", sandbox.name, exc)

    async def _shell(self, sandbox: SandboxRecord) -> str:
        for path in _SHELLS:
            try:
                await self._engine.call(
                    "HEAD", f"/containers/{sandbox.container}/archive", params={"path": path}
                )
            except EngineError:
                continue
            return "bash"
        return "sh"
