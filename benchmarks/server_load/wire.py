"""The smallest HTTP client there is, so that thousands of them cost little."""

import asyncio
import json
from typing import Any


class Connection:
    """One kept connection to a server."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(
        self, method: str, path: str, body: dict[str, Any] | None = None, **headers: str
    ) -> tuple[int, dict[str, Any]]:
        """Send one request; returns the status and the JSON that came back.

        Raises:
            ConnectionError: the server ended the connection before its answer.
        """
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        content = b"" if body is None else json.dumps(body).encode()
        lines = [
            f"{method} {path} HTTP/1.1",
            "Host: 127.0.0.1",
            "Authorization: Bearer benchmark",
            "Content-Type: application/json",
            f"Content-Length: {len(content)}",
            *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
        ]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + content)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = int(head.partition("content-length:")[2].partition("\r\n")[0])
            answer = await reader.readexactly(length)
        except asyncio.IncompleteReadError as exc:
            raise ConnectionError("the server ended the connection") from exc
        if "connection: close" in head:
            await self.close()
        return int(head.split(" ", 2)[1]), json.loads(answer)

    async def close(self) -> None:
        """End the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
