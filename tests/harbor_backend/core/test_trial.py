"""A trial while it lives: who finds it, what it is lent, and whose environment is whose."""

import gc
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harbor_backend.core.names import trial_name
from harbor_backend.core.results import SandboxWait, TrialResults
from harbor_backend.core.trial import Lendable, Trial, TrialRegistry, find_trial
from harbor_backend.places.sandbox import Role, role_of
from osmosis_ai.common.observer import NOBODY
from tests.harbor_backend.specs import living, make_spec, native_program

COUNT, WORD = Lendable[int]("count"), Lendable[str]("word")


async def test_it_is_found_while_it_lives(tmp_path: Path) -> None:
    registry = TrialRegistry()
    async with living(make_spec(tmp_path), registry) as trial:
        assert find_trial(trial.key) is trial
        assert registry.named("trial") is trial
        assert registry.named("another") is None
        assert TrialRegistry().named("trial") is None
        assert trial.observer is NOBODY
    assert registry.named("trial") is None
    with pytest.raises(RuntimeError, match="its trial has ended or never began"):
        find_trial(trial.key)


@pytest.mark.parametrize("key", ["", "trial", "0" * 32])
def test_a_key_that_is_nobodys(key: str) -> None:
    with pytest.raises(RuntimeError, match="belongs to a HarborBackend in the same process"):
        find_trial(key)


async def test_it_is_gone_also_after_an_error(tmp_path: Path) -> None:
    registry = TrialRegistry()
    with pytest.raises(KeyError, match="of the block"):
        async with living(make_spec(tmp_path), registry):
            raise KeyError("of the block")
    assert registry.named("trial") is None


async def test_two_of_one_rollout_have_a_key_each(tmp_path: Path) -> None:
    async with living(make_spec(tmp_path)) as first, living(make_spec(tmp_path)) as second:
        assert first.key != second.key
        assert (find_trial(first.key), find_trial(second.key)) == (first, second)


async def test_the_index_of_keys_keeps_nothing_alive(tmp_path: Path) -> None:
    """A registry that is dropped with its backend leaves no trial behind."""
    registry = TrialRegistry()
    async with living(make_spec(tmp_path)) as lived:
        trial = Trial(lived.spec, lived.rollout)
        block = registry.living(trial)
        block.__enter__()
        key = trial.key
        del trial, block, registry
        gc.collect()
        with pytest.raises(RuntimeError, match="its trial has ended or never began"):
            find_trial(key)


async def test_what_a_place_lends(tmp_path: Path) -> None:
    async with living(make_spec(tmp_path)) as trial:
        trial.lend(COUNT, 0)
        trial.lend(WORD, "")
        assert (trial.lent(COUNT), trial.lent(WORD)) == (0, "")
        trial.lend(WORD, "later")
        assert (trial.lent(COUNT), trial.lent(WORD)) == (0, "later")
        with pytest.raises(LookupError, match="the place of trial trial lends no other"):
            trial.lent(Lendable[int]("other"))


@pytest.mark.parametrize(
    ("given_roles", "expected"),
    [
        ([None, None, None], [Role.AGENT, Role.VERIFIER, Role.VERIFIER]),
        (["grader", None, None], [Role.GRADER, Role.AGENT, Role.VERIFIER]),
        ([None, "grader", None], [Role.AGENT, Role.GRADER, Role.VERIFIER]),
        (["agent", None], [Role.AGENT, Role.AGENT]),
        (["verifier"], [Role.VERIFIER]),
    ],
)
async def test_the_first_environment_is_the_agents(
    given_roles: list[str | None], expected: list[Role], tmp_path: Path
) -> None:
    async with living(make_spec(tmp_path)) as trial:
        assert [role_of(each, trial) for each in given_roles] == expected


def test_an_environment_without_a_trial_is_an_agents() -> None:
    assert [role_of(None, None), role_of(None, None)] == [Role.AGENT, Role.AGENT]


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(ValueError, match="'judge' is not a valid Role"):
        role_of("judge", None)


def test_notes_are_kept_once_in_their_order() -> None:
    results = TrialResults()
    for text in ("b", "a", "b"):
        results.note(text)
    results.notes.append("not kept")
    assert results.notes == ["b", "a"]


def test_seconds_are_summed_by_kind() -> None:
    results = TrialResults()
    for ago in (1, 2):
        results.took("upload", time.monotonic() - ago)
    results.timings["upload"] = 0.0
    assert results.timings == {"upload": pytest.approx(3, abs=0.5)}


def test_waiting_for_a_sandbox() -> None:
    wait = SandboxWait()
    states = [bool(wait)]
    for step in (wait.asked, wait.asked, wait.over, wait.over):
        step()
        states.append(bool(wait))
    assert states == [False, True, True, False, False]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (None, "openai/m"),
        ({}, "openai/m"),
        ({"harbor_model": "openai/mine"}, "openai/mine"),
        ({"harbor_model": ""}, "openai/m"),
        ({"harbor_model": None}, "openai/m"),
    ],
)
def test_the_model_that_a_native_agent_asks_for(
    metadata: dict[str, object] | None, expected: str, tmp_path: Path
) -> None:
    program = native_program("nop")
    spec = make_spec(tmp_path, program=program, request={"metadata": metadata})
    assert spec.model_name == expected


LEGAL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,41}[a-z0-9])?")


@given(st.text(max_size=200))
def test_any_rollout_id_makes_the_name_of_a_trial(rollout_id: str) -> None:
    """Of a directory, a container and a compose project alike; no two are the same."""
    first, second = trial_name(rollout_id), trial_name(rollout_id)
    assert first != second
    for name in (first, second):
        assert LEGAL.fullmatch(name)


@pytest.mark.parametrize(
    ("rollout_id", "readable"),
    [
        ("row-17", "row-17"),
        ("Row 17/Step_2", "row-17-step-2"),
        ("日本", "rollout"),
        ("", "rollout"),
        ("--a--", "a"),
        ("x" * 50, "x" * 32),
        ("x" * 31 + "-y", "x" * 31 + "-"),
    ],
)
def test_a_person_recognises_the_rollout(rollout_id: str, readable: str) -> None:
    assert trial_name(rollout_id).rpartition("-")[0] == readable


def test_notes_are_few_and_short() -> None:
    results = TrialResults()
    for number in range(300):
        results.note(f"{number} " + "x" * 5_000_000)
    results.note("0 " + "x" * 5_000_000)
    assert len(results.notes) == 101
    assert {len(note) for note in results.notes[:-1]} == {2048}
    assert results.notes[-1] == "[200 more notes, left out]"
