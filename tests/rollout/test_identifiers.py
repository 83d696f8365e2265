"""Rollout ids, which name directories."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from osmosis_ai.common.identifiers import ensure_single_path_segment, is_single_path_segment
from osmosis_ai.rollout import ExecutionRequest
from osmosis_ai.rollout.artifacts import rollout_dir

BAD = ["", ".", "..", "a/b", "/a", "a/", "a\\b", "\\", "a\0b", "../a", "\ud800"]


@pytest.mark.parametrize("value", BAD)
def test_refused(value: str) -> None:
    assert not is_single_path_segment(value)
    with pytest.raises(ValueError, match="a single path segment"):
        ensure_single_path_segment(value)
    with pytest.raises(ValidationError, match="a single path segment"):
        ExecutionRequest(id=value)
    with pytest.raises(ValueError, match="a single path segment"):
        rollout_dir(Path("/srv"), value)


@pytest.mark.parametrize("value", ["a", "...", ".hidden", "a b", "a:b", "naïve №1 \U0001f600", "-"])
def test_accepted_unchanged(value: str) -> None:
    assert ExecutionRequest(id=value).id == value


@given(st.text(max_size=40))
def test_accepted_ids_stay_directly_under_the_root(value: str) -> None:
    root = Path("/srv/rollouts")
    if is_single_path_segment(value):
        assert rollout_dir(root, value).parent == root
        assert rollout_dir(root, value).name == value
    else:
        with pytest.raises(ValueError, match="single path segment"):
            rollout_dir(root, value)


@given(st.text(max_size=10), st.sampled_from(["/", "\\", "\0"]), st.text(max_size=10))
def test_a_separator_anywhere_is_refused(before: str, separator: str, after: str) -> None:
    assert not is_single_path_segment(before + separator + after)
