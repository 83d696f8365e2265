"""Names of containers, for any trial, and such that no trial can take a kept one's."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harbor_backend.places.labels import KEPT_PREFIX, PREFIX, container_name

# The engine's own rule (its documentation of "docker run --name").
LEGAL = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+")


@given(st.text(max_size=200))
def test_any_session_makes_a_legal_name(session_id: str) -> None:
    name = container_name(session_id, "0a1b2c3d")
    assert LEGAL.fullmatch(name)
    assert name.startswith(f"{PREFIX}-")
    assert name.endswith("-0a1b2c3d")
    assert len(name) <= 80 + len(f"{PREFIX}--0a1b2c3d")
    assert not name.startswith(KEPT_PREFIX)


@given(st.text(st.characters(codec="ascii"), min_size=1, max_size=60))
def test_a_name_that_is_legal_stays_as_it_is(session_id: str) -> None:
    plain = re.sub(r"[^a-zA-Z0-9_.-]", "", session_id).strip("-.")
    assert container_name(plain, "1") == f"{PREFIX}-{plain}-1"


@pytest.mark.parametrize(
    ("session_id", "readable"),
    [
        ("row-17-0a1b2c3d4e__env", "row-17-0a1b2c3d4e__env"),
        ("a b/c", "a-b-c"),
        ("..-a-..", "a"),
        ("日本", ""),
        ("x" * 100, "x" * 80),
    ],
)
def test_a_person_recognises_the_trial(session_id: str, readable: str) -> None:
    assert container_name(session_id, "1") == f"{PREFIX}-{readable}-1"
