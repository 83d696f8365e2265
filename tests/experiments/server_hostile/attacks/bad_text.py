"""Text that is none: broken UTF-8, lone surrogates, NULs and broken HTTP."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.experiments.server_hostile.attacks.base import Target, every, head, raw

PER_SEC = 50

_BODIES = [
    b'{"rollout_id": "\xff\xfe", "initial_messages": [], "chat_completions_url": "x"}',
    b'{"rollout_id": "\\ud800", "initial_messages": [], "chat_completions_url": "http://x/v1"}',
    b'{"rollout_id": "a\\u0000", "initial_messages": [], "chat_completions_url": "http://x/v1"}',
    b"\xef\xbb\xbf{}",
    b"[" * 50_000,
    b'{"rollout_id": ' + b"9" * 5_000 + b"}",
    b'{"initial_messages": NaN}',
    b"\x00" * 1000,
]
_HEADS = [
    head("GET", "/rollout/%FF%FE/result", "X-Osmosis-Rollout-Lease: \xff"),
    head("GET", "/rollout/%00/status"),
    head("GET", "/rollouts?cursor=%ff&limit=1e9"),
    b"GET / HTTP/9.9\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
]


@asynccontextmanager
async def bad_text(target: Target) -> AsyncIterator[None]:
    """50 requests a second, with the server's key."""
    kinds = itertools.cycle(
        [head("POST", "/rollout", f"Content-Length: {len(body)}") + body for body in _BODIES]
        + _HEADS
    )

    async def one(data: bytes) -> AsyncIterator[bytes]:
        yield data

    async with every(1 / target.times(PER_SEC), lambda: raw(target, one(next(kinds)))):
        yield
