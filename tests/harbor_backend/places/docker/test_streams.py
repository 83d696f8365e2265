"""What an engine sends of a container's output, and what of it goes into a message."""

import asyncio
import struct
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harbor_backend.places.docker.streams import demultiplexed, plain_text


@given(
    sent=st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=20)), max_size=6),
    size=st.integers(1, 30),
)
def test_frames_come_out_as_they_were_whatever_the_pieces(
    sent: list[tuple[int, bytes]], size: int
) -> None:
    data = b"".join(struct.pack(">BxxxL", kind, len(text)) + text for kind, text in sent)

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(data), size):
            yield data[start : start + size]

    async def frames() -> list[tuple[int, bytes]]:
        return [frame async for frame in demultiplexed(pieces())]

    assert asyncio.run(frames()) == sent


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        (b"no\n", "no"),
        (b"\x1b[31mred\x1b[0m \x1b]0;title\x07end\r\n", "red end"),
        (b"a\tb\x00c\x08\x7f\r", "a bc"),
        (b"\xff\xfe", "��"),
        ("one\r\ntwo\n", "one\ntwo"),
        (b"", ""),
    ],
)
def test_plain_text(printed: str | bytes, text: str) -> None:
    assert plain_text(printed) == text


@given(st.text())
def test_plain_text_has_no_control_characters(printed: str) -> None:
    assert all(c == "\n" or c.isprintable() for c in plain_text(printed))


def test_the_end_of_a_long_text_is_what_counts() -> None:
    assert plain_text("x" * 5000 + "the end", 10) == "…xxxthe end"
