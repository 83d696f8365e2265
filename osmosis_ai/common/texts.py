"""Texts of a known size that every format can hold: errors and notes come from untrusted code."""

import re
from collections.abc import Iterable

MAX_ERROR_CHARACTERS = 16_384
"""Of one error's text."""
MAX_NOTE_CHARACTERS = 2_048
"""Of one note or warning."""
MAX_NOTES = 100
"""Notes, or warnings, of one result."""


def shortened(text: str, limit: int = MAX_ERROR_CHARACTERS) -> str:
    """The text; of one of more than ``limit`` characters its beginning and end, and a mark."""
    if len(text) <= limit:
        return text
    mark = f" [… shortened from {len(text)} characters …] "
    rest = max(limit - len(mark), 0)
    tail = rest // 2
    return f"{text[: rest - tail]}{mark}{text[len(text) - tail :]}"


def clean_text(text: str) -> str:
    """Replace what UTF-8 cannot hold: lone surrogates become U+FFFD, pairs one character."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # control characters, which begin every escape of a terminal
    "\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # order, width, lines
    "\ud800-\udfff\U000e0000-\U000e007f]"  # what no terminal can encode, and invisible tags
)


def printable(text: str, keep: str = "") -> str:
    """A text that a terminal or a log shows as it is, on one line.

    Control characters, line ends, overrides of the direction of writing and invisible
    characters stand as JSON writes them (``\\u001b``); ``keep`` names those that stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return _UNPRINTABLE.sub(
        lambda found: found[0] if found[0] in keep else _escaped(found[0]), text
    )


def _escaped(character: str) -> str:
    return {"\n": r"\n", "\r": r"\r", "\t": r"\t"}.get(character) or "".join(
        rf"\u{unit:04x}" for unit in _utf16(character)
    )


def _utf16(character: str) -> memoryview:
    return memoryview(character.encode("utf-16", "surrogatepass")[2:]).cast("H")


def note_text(text: str) -> str:
    """A text as a note holds it."""
    return shortened(clean_text(text), MAX_NOTE_CHARACTERS)


def bounded_notes(notes: Iterable[str]) -> list[str]:
    """The first notes, and how many more there were."""
    found = list(notes)
    kept, more = [note_text(note) for note in found[:MAX_NOTES]], len(found) - MAX_NOTES
    return kept if more <= 0 else [*kept, f"[{more} more notes, left out]"]
