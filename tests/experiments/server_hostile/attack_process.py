"""The hostile callers, in a process of their own.

    python -m tests.experiments.server_hostile.attack_process PORT SCALE

A line of names starts those attacks and is answered when they are under way; an empty line ends
them and is answered with a tally of what the server answered.
"""

import asyncio
import os
import sys
from contextlib import AsyncExitStack

from benchmarks.model_path.process import announce, say
from tests.experiments.server_hostile.attacks import ATTACKS
from tests.experiments.server_hostile.attacks.base import Target


async def main() -> None:
    """Attack until standard input ends."""
    port, scale = int(sys.argv[1]), float(sys.argv[2])
    target = Target(port, scale)
    async with AsyncExitStack() as lines:
        stack = await lines.enter_async_context(AsyncExitStack())
        async for line in announce({}):
            if line:
                target = Target(port, scale)
                for name in line.split():
                    await stack.enter_async_context(ATTACKS[name](target))
                say({})
            else:
                await stack.aclose()
                say(dict(target.answers))


if __name__ == "__main__":
    os.nice(19)  # attackers have machines of their own; here they must not take the server's
    asyncio.run(main())
