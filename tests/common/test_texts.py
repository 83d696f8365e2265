"""Texts of a known size."""

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from osmosis_ai.common.texts import (
    MAX_NOTE_CHARACTERS,
    MAX_NOTES,
    bounded_notes,
    clean_text,
    note_text,
    printable,
    shortened,
)

ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=300)


@given(ANY_TEXT, st.integers(60, 200))
def test_a_shortened_text_keeps_its_beginning_and_end(text: str, limit: int) -> None:
    found = shortened(text, limit)
    if len(text) <= limit:
        assert found == text
        return
    before, mark, after = found.partition(f" [… shortened from {len(text)} characters …] ")
    assert mark
    assert len(found) == limit
    assert text.startswith(before)
    assert text.endswith(after)
    assert 0 <= len(before) - len(after) <= 1


def test_an_error_of_megabytes() -> None:
    found = shortened("head " + "x" * 5_000_000 + " tail")
    assert len(found) == 16_384
    assert (found[:5], found[-5:]) == ("head ", " tail")


@given(st.lists(ANY_TEXT | st.just("x" * 5000), max_size=150))
def test_notes_are_few_short_and_valid_text(notes: list[str]) -> None:
    found = bounded_notes(notes)
    for note in found:
        assert len(note) <= MAX_NOTE_CHARACTERS
        note.encode()
    more = len(notes) - MAX_NOTES
    assert found[:MAX_NOTES] == [note_text(note) for note in notes[:MAX_NOTES]]
    assert found[MAX_NOTES:] == ([f"[{more} more notes, left out]"] if more > 0 else [])


@given(ANY_TEXT)
def test_clean_text_is_utf_8_and_touches_nothing_else(text: str) -> None:
    cleaned = clean_text(text)
    cleaned.encode()
    assert clean_text(cleaned) == cleaned
    if not any("\ud800" <= char <= "\udfff" for char in text):
        assert cleaned == text


@given(ANY_TEXT)
def test_printable_text_is_one_line_that_steers_no_terminal(text: str) -> None:
    shown = printable(text)
    assert printable(shown) == shown
    assert len(shown.splitlines()) <= 1
    assert not {unicodedata.category(c) for c in shown} & {"Cc", "Cs", "Zl", "Zp"}
    assert not {unicodedata.bidirectional(c) for c in shown} & {
        *("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"),
    }


@given(ANY_TEXT.filter(lambda text: "\\" not in text))
def test_what_is_escaped_can_be_read_back(text: str) -> None:
    quoted = printable(text).replace('"', r"\"")
    assert json.loads(f'"{quoted}"') == text


def test_what_is_printable_stays() -> None:
    for text in ("plain", "Grüße, 世界 \U0001f600", "tab\tand\nline"):
        assert printable(text, keep="\n\t") == text
    assert printable("\x1b]0;t\x07\x9b\u202e\nx") == r"\u001b]0;t\u0007\u009b\u202e\nx"
