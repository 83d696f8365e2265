"""The frames that host and supervisor exchange.

A frame is ``channel (u32) type (u8) length (u32) payload``, big-endian. The
host opens a channel with ``OPEN`` and a JSON request that names an operation
(``exec``, ``mkdir``, ``put``, ``get``); the supervisor ends it with ``DONE``
and a JSON answer. Small frames of one channel may come together, as ``MANY``:
``type (u8) length (u32) payload`` one after the other.
"""

import struct
from collections.abc import Iterator

OPEN, INPUT, INPUT_END, CANCEL = 1, 2, 3, 4
STDOUT, STDERR, RESULT, ENTRY, DATA, DONE, READY, MANY = 16, 17, 18, 19, 20, 21, 22, 23

HEADER = struct.Struct(">IBI")
INNER = struct.Struct(">BI")
CHUNK = 64 * 1024
MAX_FRAME = 1024 * 1024

RESULT_FD = 3
TIMED_OUT = 124


def pack(channel: int, kind: int, payload: bytes = b"") -> bytes:
    """Return one frame."""
    return HEADER.pack(channel, kind, len(payload)) + payload


def each(kind: int, payload: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield type and payload of the one frame that came, or of those that came as ``MANY``.

    Raises:
        ValueError: the last of many is cut.
    """
    if kind != MANY:
        yield kind, payload
        return
    at = 0
    while at < len(payload):
        if at + INNER.size > len(payload):
            raise ValueError("a frame of many ends within a header")
        kind, length = INNER.unpack_from(payload, at)
        at += INNER.size + length
        if at > len(payload):
            raise ValueError("a frame of many ends within a payload")
        yield kind, payload[at - length : at]
