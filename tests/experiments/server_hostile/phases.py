"""Quiet and hostile times in turn, so that the machine's noise meets both."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from benchmarks.model_path.process import Child
from benchmarks.server_load.wire import Connection
from tests.experiments.server_hostile.honest import Honest, Waits

_CALM_SEC = 90.0


@dataclass
class Comparison:
    """What honest callers waited without and with an attack.

    Attributes:
        lags: 99th percentiles of the server's loop lag in milliseconds, quiet and hostile.
        busy: processor seconds of the server per second, quiet and hostile.
        answers: what the attackers were answered.
    """

    quiet: Waits = field(default_factory=Waits)
    hostile: Waits = field(default_factory=Waits)
    lags: tuple[float, float] = (0.0, 0.0)
    busy: tuple[float, float] = (0.0, 0.0)
    answers: Counter[str] = field(default_factory=Counter)

    def ratios(self) -> dict[str, float]:
        """Hostile medians by quiet ones."""
        quiet = self.quiet.medians()
        return {name: median / quiet[name] for name, median in self.hostile.medians().items()}


@dataclass(frozen=True)
class Stage:
    """The three parties.

    Attributes:
        seconds: how long each measurement takes.
        lead_sec: how long attacks go on before it.
    """

    server: Child
    attackers: Child
    honest: Honest
    port: int
    seconds: float
    lead_sec: float

    async def compare(self, attacks: list[str], rounds: int) -> Comparison:
        """Measure without the attacks and with them, ``rounds`` times each."""
        found = Comparison()
        for _ in range(rounds):
            quiet = await self._measure(found.quiet)
            async with self._under(attacks, found):
                await asyncio.sleep(self.lead_sec)
                hostile = await self._measure(found.hostile)
            found.lags = (max(found.lags[0], quiet[0]), max(found.lags[1], hostile[0]))
            found.busy = (
                found.busy[0] + quiet[1] / rounds,
                found.busy[1] + hostile[1] / rounds,
            )
        return found

    async def _measure(self, waits: Waits) -> tuple[float, float]:
        """Add to what honest callers waited; returns the server's loop lag and its load."""
        before = await self.server.ask("lag")
        waits.add(await self.honest.measure(self.seconds))
        after = await self.server.ask("lag")
        return after["p99"], (after["cpu_sec"] - before["cpu_sec"]) / self.seconds

    @asynccontextmanager
    async def _under(self, attacks: list[str], found: Comparison) -> AsyncIterator[None]:
        await self.attackers.ask(" ".join(attacks))
        try:
            yield
        finally:
            found.answers.update(await self.attackers.ask(""))
            await self._calm()

    async def _calm(self) -> None:
        """Wait until no rollout of the attackers is left."""
        connection = Connection(self.port)
        async with asyncio.timeout(_CALM_SEC):
            while True:
                _, health = await connection.ask("GET", "/health")
                if health["lifecycle"]["active_rollouts"] == 0:
                    break
                await asyncio.sleep(0.2)
        await connection.close()
