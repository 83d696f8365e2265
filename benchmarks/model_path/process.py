"""Child processes that speak JSON lines: one when they are ready, one per question."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Child:
    """A process started by this benchmark, and ended with it."""

    def __init__(self, process: asyncio.subprocess.Process, hello: dict[str, Any]) -> None:
        self._process = process
        self.hello = hello

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def ask(self, question: str) -> dict[str, Any]:
        """Send a line and return the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(question.encode() + b"\n")
        return await _answer(self._process)


@asynccontextmanager
async def child(module: str, *arguments: str) -> AsyncIterator[Child]:
    """Run a module of this package until the block ends."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    try:
        yield Child(process, await _answer(process))
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), 10)
        except TimeoutError:
            process.kill()
            await process.wait()


async def announce(hello: dict[str, Any]) -> AsyncIterator[str]:
    """Within a child: say that it is ready, then yield the questions."""
    say(hello)
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    while line := await reader.readline():
        yield line.decode().strip()


def say(value: dict[str, Any]) -> None:
    """Within a child: one line of JSON."""
    print(json.dumps(value), flush=True)


async def _answer(process: asyncio.subprocess.Process) -> dict[str, Any]:
    assert process.stdout is not None
    line = await process.stdout.readline()
    if not line:
        raise RuntimeError(f"process {process.pid} ended: {await process.wait()}")
    value: dict[str, Any] = json.loads(line)
    return value
