"""How late an event loop runs its timers.

    python -m benchmarks.model_path.lag

measures a loop that has nothing else to do: what the machine alone costs.
"""

import asyncio
import time

from benchmarks.model_path.process import announce, say

_TICK_SEC = 0.005


class LoopLag:
    """How late the event loop runs a timer."""

    def __init__(self) -> None:
        self._lags: list[float] = []

    async def watch(self) -> None:
        """Measure for ever."""
        while True:
            due = time.perf_counter() + _TICK_SEC
            await asyncio.sleep(_TICK_SEC)
            self._lags.append(time.perf_counter() - due)

    def take(self) -> dict[str, float]:
        """Percentiles since the last time, in milliseconds, and processor seconds so far."""
        lags, self._lags = sorted(self._lags) or [0.0], []
        return {
            "p50": lags[len(lags) // 2] * 1000,
            "p99": lags[int(len(lags) * 0.99)] * 1000,
            "max": lags[-1] * 1000,
            "cpu_sec": time.process_time(),
        }


async def serve() -> None:
    """Measure until standard input ends; every line asks for the percentiles."""
    lag = LoopLag()
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(lag.watch())
        async for _ in announce({}):
            say(lag.take())
        watching.cancel()


if __name__ == "__main__":
    asyncio.run(serve())
