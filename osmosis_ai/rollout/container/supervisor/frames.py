"""The frames that host and supervisor exchange.

A frame is ``channel (u32) type (u8) length (u32) payload``, big-endian. The
host opens a channel with ``OPEN`` and a JSON request that names an operation
(``exec``, ``mkdir``, ``put``, ``get``); the supervisor ends it with ``DONE``
and a JSON answer.
"""

import struct

OPEN, INPUT, INPUT_END, CANCEL = 1, 2, 3, 4
STDOUT, STDERR, RESULT, ENTRY, DATA, DONE, READY = 16, 17, 18, 19, 20, 21, 22

HEADER = struct.Struct(">IBI")
CHUNK = 64 * 1024
MAX_FRAME = 1024 * 1024

RESULT_FD = 3
TIMED_OUT = 124


def pack(channel: int, kind: int, payload: bytes = b"") -> bytes:
    """Return one frame."""
    return HEADER.pack(channel, kind, len(payload)) + payload
