"""What a container's processes printed: the engine's frames of it, and as text for a message."""

import re
import struct
from collections.abc import AsyncGenerator, AsyncIterator

STDOUT, STDERR = 1, 2

_HEADER = struct.Struct(">BxxxL")
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)", re.DOTALL)
_TEXT_CHARACTERS = 2000


async def demultiplexed(chunks: AsyncIterator[bytes]) -> AsyncGenerator[tuple[int, bytes]]:
    """Yield ``(stream, data)`` of an answer in which the engine mixes the two streams."""
    pending = bytearray()
    async for chunk in chunks:
        pending += chunk
        while len(pending) >= _HEADER.size:
            kind, length = _HEADER.unpack_from(pending)
            end = _HEADER.size + length
            if len(pending) < end:
                break
            data = bytes(pending[_HEADER.size : end])
            del pending[:end]
            yield kind, data


def plain_text(printed: str | bytes, limit: int = _TEXT_CHARACTERS) -> str:
    """The end of what a program printed, in printable characters and line ends alone."""
    text = printed if isinstance(printed, str) else printed.decode(errors="replace")
    text = _ESCAPE.sub("", text).replace("\r\n", "\n").replace("\t", " ")
    text = "".join(c for c in text if c == "\n" or c.isprintable()).strip()
    return text if len(text) <= limit else f"…{text[-limit:]}"
