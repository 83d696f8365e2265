"""Reward files: read as Harbor reads them, and never more than one can be."""

import json
import os
import socket
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from harbor.models.trial.paths import TrialPaths
from harbor.verifier.verifier import RewardFileEmptyError, Verifier, VerifierOutputParseError
from hypothesis import given
from hypothesis import strategies as st

from harbor_backend.places.limits import MAX_REWARD_BYTES
from harbor_backend.trial.categories import category_of
from harbor_backend.trial.rewards import read_reward_json, read_reward_text

type Make = Callable[[Path], object]

REMEDY = (
    ": tests/test.sh must write a finite number to /logs/verifier/reward.txt, or an object of "
    "finite numbers to reward.json, as a regular file of at most 65536 bytes"
)


def text(content: str) -> Make:
    return lambda path: path.write_text(content)


def sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 100 * 1024**2)


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        server.bind(f"/proc/self/fd/{here}/{path.name}")
        os.close(here)


NOT_PLAIN: dict[str, tuple[Make, str]] = {
    "sparse": (sparse, "holds 104857600 bytes, and at most 65536 are read"),
    "a directory": (Path.mkdir, "is a directory, not a regular file"),
    "a link": (lambda path: path.symlink_to("/etc/hostname"), "is a link, not a regular file"),
    "a pipe": (os.mkfifo, "is a pipe, socket or device, not a regular file"),
    "a socket": (unix_socket, "is a pipe, socket or device, not a regular file"),
    "no text": (lambda path: path.write_bytes(b"\xff1"), "is no UTF-8: "),
}
NO_NUMBER: dict[str, tuple[Make, str]] = {
    "words": (text("perfect"), "holds 'perfect', which is no number"),
    "a long word": (text("x" * 60_000), f"holds '{'x' * 99}…, which is no number"),
    "NaN": (text("nan"), "holds 'nan', which is no finite number"),
    "too large": (text("1e999"), "holds '1e999', which is no finite number"),
    "many digits": (text("1" + "0" * 5000), "which is no finite number"),
}
NO_REWARDS: dict[str, tuple[Make, str]] = {
    "no JSON": (text("{"), "cannot be read as JSON: "),
    "deep": (text("[" * 60_000), "nests too deeply"),
    "deep and whole": (text("[" * 30_000 + "]" * 30_000), "nests too deeply"),
    "a number": (text("0.5"), "holds 0.5, which is no object"),
    "null": (text("null"), "holds None, which is no object"),
    "words": (text('{"reward": "NaN"}'), "holds 'NaN' for 'reward', which is no number"),
    "a list": (text('{"reward": [1]}'), "holds [1] for 'reward', which is no number"),
    "NaN": (text('{"reward": NaN}'), "holds nan for 'reward', which is no finite number"),
    "infinite": (text('{"a": -1e309}'), "holds -inf for 'a', which is no finite number"),
    "too large for a float": (
        text(json.dumps({"reward": 10**400})),
        "holds a number for 'reward' that is too large for a float",
    ),
    "more digits than Python reads": (text(f'{{"reward": 1{"0" * 5000}}}'), "as JSON: "),
    "a key of no text": (
        text('{"\\ud800": 1}'),
        "has the key '\\ud800', which is no valid Unicode",
    ),
}
READERS = {"reward.txt": read_reward_text, "reward.json": read_reward_json}
CASES = [
    pytest.param(name, *case, id=f"{name}: {what}")
    for name, cases in (
        ("reward.txt", {**NOT_PLAIN, **NO_NUMBER}),
        ("reward.json", {**NOT_PLAIN, **NO_REWARDS}),
    )
    for what, case in cases.items()
]


@pytest.mark.parametrize(("name", "make", "problem"), CASES)
def test_what_is_no_reward(name: str, make: Make, problem: str, tmp_path: Path) -> None:
    make(tmp_path / name)
    with pytest.raises(VerifierOutputParseError) as caught:
        READERS[name](tmp_path / name)
    told = str(caught.value)
    assert told.startswith(f"The verifier's /logs/verifier/{name} ")
    assert problem in told
    assert told.endswith(REMEDY)
    assert len(told) < 1000
    assert category_of(type(caught.value).__name__, "verifier") == "validation_error"


@pytest.mark.parametrize("name", READERS)
def test_an_empty_file(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    with pytest.raises(RewardFileEmptyError, match=f"/logs/verifier/{name} is empty: tests"):
        READERS[name](tmp_path / name)


@pytest.mark.parametrize("name", READERS)
def test_a_large_file_is_not_loaded(name: str, tmp_path: Path) -> None:
    sparse(tmp_path / name)
    tracemalloc.start()
    try:
        with pytest.raises(VerifierOutputParseError):
            READERS[name](tmp_path / name)
        assert tracemalloc.get_traced_memory()[1] < 10 * MAX_REWARD_BYTES
    finally:
        tracemalloc.stop()


def harbors(path: Path) -> Any:
    """Harbor's own verifier, for its reading of reward files."""
    return SimpleNamespace(trial_paths=TrialPaths(trial_dir=path))


_NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**300), 10**300)


@given(st.dictionaries(st.text(max_size=8), _NUMBERS | st.booleans(), max_size=5))
def test_rewards_are_those_that_harbor_reads(
    tmp_path_factory: pytest.TempPathFactory, rewards: dict[str, float]
) -> None:
    paths = TrialPaths(trial_dir=tmp_path_factory.mktemp("trial"))
    paths.verifier_dir.mkdir()
    paths.reward_json_path.write_text(json.dumps(rewards))
    read = read_reward_json(paths.reward_json_path)
    assert read == Verifier._parse_reward_json(harbors(paths.trial_dir)) == rewards


@given(_NUMBERS, st.sampled_from(["{}", " {}\n", "+{}", "0{}"]))
def test_a_reward_is_the_one_that_harbor_reads(
    tmp_path_factory: pytest.TempPathFactory, value: float, form: str
) -> None:
    paths = TrialPaths(trial_dir=tmp_path_factory.mktemp("trial"))
    paths.verifier_dir.mkdir()
    paths.reward_text_path.write_text(form.format(abs(value)))
    read = read_reward_text(paths.reward_text_path)
    assert read == Verifier._parse_reward_text(harbors(paths.trial_dir))
    assert read == {"reward": float(abs(value))}
