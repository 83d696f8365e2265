"""The gateway with one open rollout per caller, its calls recorded to disk.

python -m benchmarks.model_path.gateway_process <upstream URL> <rollouts>
"""

import asyncio
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from benchmarks.model_path.lag import LoopLag
from benchmarks.model_path.process import announce, say
from osmosis_ai.gateway.gateway import Gateway
from osmosis_ai.gateway.tuning import tune_process


async def serve(upstream: str, rollouts: int) -> None:
    """Serve until standard input ends; every line asks for the loop's lag."""
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gateway-bench")))
        gateway = await stack.enter_async_context(Gateway(records_dir=directory))
        opened = [
            await stack.enter_async_context(gateway.open(f"rollout-{number}", upstream))
            for number in range(rollouts)
        ]
        tune_process()
        lag = LoopLag()
        group = await stack.enter_async_context(asyncio.TaskGroup())
        watching = group.create_task(lag.watch())
        targets = [{"url": endpoint.url, "token": endpoint.token} for endpoint in opened]
        async for _ in announce({"targets": targets}):
            say(lag.take())
        watching.cancel()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
