"""A TCP proxy in front of a server that cuts connections when told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class CuttingProxy:
    """Passes bytes both ways.

    Attributes:
        swallow: the answers on that many of the next connections are cut
            instead of passed on, after the server has answered.
    """

    target: tuple[str, int]
    url: str = ""
    swallow: int = 0
    swallowed: int = 0
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    def cut(self) -> None:
        """End every connection of now."""
        for writer in list(self._open):
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on one connection."""
        eats = self.swallow > 0
        self.swallow -= eats
        self._open.add(writer)
        try:
            up_reader, up_writer = await asyncio.open_connection(*self.target)
            up = asyncio.create_task(_pass(reader, up_writer))
            if eats:
                await up_reader.read(1)
                self.swallowed += 1
            else:
                await _pass(up_reader, writer)
            up.cancel()
            up_writer.transport.abort()
        except OSError:
            pass  # the server is away, so the caller's connection ends
        finally:
            self._open.discard(writer)
            writer.transport.abort()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(2**16):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass  # cut on one side


@asynccontextmanager
async def cutting_proxy(url: str) -> AsyncIterator[CuttingProxy]:
    """Run a proxy for the server at ``url``."""
    host, _, port = url.removeprefix("http://").partition(":")
    proxy = CuttingProxy((host, int(port)))
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        proxy.cut()
        await server.wait_closed()
