"""A shell at the other end of a connection: small commands without a process each."""

import asyncio
import secrets
import shlex
from collections.abc import Sequence

from harbor_backend.places.ssh.errors import HostLostError, HostRefusedError

_MAX_OUTPUT = 64 * 1024


class RemoteShell:
    """Runs one small script after the other in a ``sh`` that is there already."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._turn = asyncio.Lock()
        self._broken = False
        self._running: set[asyncio.Task[tuple[int, str]]] = set()

    async def run(self, script: str, *arguments: str, timeout_sec: float = 60) -> str:
        """Return what a script printed; ``$1`` and so on are its arguments.

        A script that was asked for runs to its end, also when the caller is
        cancelled: its answer must not be left for the next one.

        Raises:
            HostRefusedError: it ended with another exit code than 0.
            HostLostError: the shell is gone, or did not answer in time.
        """
        running = asyncio.create_task(self._in_turn(script, arguments, timeout_sec))
        self._running.add(running)
        running.add_done_callback(self._ended)
        code, output = await asyncio.shield(running)
        if code:
            raise HostRefusedError(output.strip()[-2000:] or f"exit code {code}")
        return output

    def _ended(self, running: "asyncio.Task[tuple[int, str]]") -> None:
        self._running.discard(running)
        if not running.cancelled():
            running.exception()  # whoever asked was told, or does not want to know any more

    async def _in_turn(
        self, script: str, arguments: Sequence[str], timeout_sec: float
    ) -> tuple[int, str]:
        async with self._turn:
            if self._broken:
                raise HostLostError("the shell there is gone")
            try:
                async with asyncio.timeout(timeout_sec):
                    return await self._exchange(script, arguments)
            except (TimeoutError, OSError, EOFError, ValueError) as exc:
                self._broken = True
                raise HostLostError(f"the shell there did not answer ({exc or 'in time'})") from exc

    async def _exchange(self, script: str, arguments: Sequence[str]) -> tuple[int, str]:
        mark = f"osmosis-{secrets.token_hex(16)}"
        command = shlex.join(["sh", "-c", script, "sh", *arguments])
        line = f"{command} </dev/null 2>&1; printf '\\n%s %d\\n' {mark} $?\n"
        self._writer.write(line.encode())
        await self._writer.drain()
        output = ""
        while True:
            line = (await self._reader.readuntil()).decode(errors="replace")
            if line.startswith(f"{mark} "):
                return int(line.split()[1]), output.removesuffix("\n")
            output = (output + line)[-_MAX_OUTPUT:]
