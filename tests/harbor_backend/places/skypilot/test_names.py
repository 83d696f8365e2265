"""Names of sandboxes: legal, and telling engine and rollout."""

import re

import pytest
from harbor.environments.skypilot import _sanitize_dns_name
from hypothesis import given
from hypothesis import strategies as st

from harbor_backend.places.instance import instance_id
from harbor_backend.places.skypilot.names import (
    checked_label,
    instance_of,
    is_of_trial,
    rollout_of,
    rollout_part,
    sandbox_name,
    telling_trial_name,
)

INSTANCES = st.from_regex(r"[0-9a-f]{12}-[0-9a-f]{8}", fullmatch=True)
LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,51}[a-z0-9])?")


@given(INSTANCES, st.text(max_size=200))
def test_any_rollout_id_makes_a_legal_name(instance: str, rollout_id: str) -> None:
    name = sandbox_name(instance, rollout_id)
    assert LABEL.fullmatch(name)
    assert instance_of(name) == instance
    assert rollout_of(name) == rollout_part(rollout_id)


@given(
    INSTANCES,
    st.text(max_size=200),
    st.sampled_from(["env", "grader", "verifier__trial", "verifier__a-step-of-a-long-name"]),
)
def test_what_harbor_makes_of_a_trials_name_tells_the_same(
    instance: str, rollout_id: str, session: str
) -> None:
    trial, other = telling_trial_name(instance, rollout_id), telling_trial_name(instance, "other")
    name = _sanitize_dns_name(f"hb-{trial}__{session}")
    assert LABEL.fullmatch(name)
    assert instance_of(name) == instance
    assert is_of_trial(name, trial)
    assert not is_of_trial(name, other)
    assert rollout_part(rollout_id).rpartition("-")[2] in name


def test_this_engines_id_fits() -> None:
    assert instance_of(sandbox_name(instance_id(), "r" * 400)) == instance_id()


def test_two_sandboxes_of_a_rollout_have_two_names() -> None:
    assert sandbox_name(instance_id(), "r") != sandbox_name(instance_id(), "r")


def test_rollouts_that_begin_alike_are_told_apart() -> None:
    assert rollout_part("rollout-1") != rollout_part("rollout-2")


@pytest.mark.parametrize(
    "name", ["", "osm", "osmosis-x", "dev", "osm-123-r-1", "hb-0123456789ab-01234567-r-1"]
)
def test_other_names_are_not_ours(name: str) -> None:
    assert instance_of(name) is None


@pytest.mark.parametrize("label", ["", "-a", "a-", "A", "a_b", "a" * 54])
def test_a_persons_name_is_checked(label: str) -> None:
    with pytest.raises(ValueError, match="pool="):
        checked_label(label, "pool")
