"""What a task's tests wrote for a reward, read as Harbor reads it, and no further than it is one.

The errors are Harbor's own, by whose names its tools know that the verifier failed.
"""

import json
import math
from pathlib import Path

from harbor.models.trial.paths import EnvironmentPaths
from harbor.verifier.verifier import RewardFileEmptyError, VerifierOutputParseError

from harbor_backend.places.limits import MAX_REWARD_BYTES
from harbor_backend.places.plain_file import NotPlainError, read_plain

type Rewards = dict[str, float | int]

_REMEDY = (
    "tests/test.sh must write a finite number to /logs/verifier/reward.txt, or an object of "
    f"finite numbers to reward.json, as a regular file of at most {MAX_REWARD_BYTES} bytes"
)
NO_REWARD_FILE = f"The verifier left no reward file: {_REMEDY}"
_SHOWN_CHARACTERS = 100


def read_reward_text(path: Path) -> Rewards:
    """The reward of a ``reward.txt``.

    Raises:
        RewardFileEmptyError: the file is empty.
        VerifierOutputParseError: it is no regular file of a number.
    """
    text = _text(path)
    try:
        value = float(text)
    except ValueError:
        raise _refusal(path, f"holds {_shown(text)}, which is no number") from None
    if not math.isfinite(value):
        raise _refusal(path, f"holds {_shown(text)}, which is no finite number")
    return {"reward": value}


def read_reward_json(path: Path) -> Rewards:
    """The rewards of a ``reward.json``.

    Raises:
        RewardFileEmptyError: the file is empty.
        VerifierOutputParseError: it is no regular file of an object of numbers.
    """
    text = _text(path)
    try:
        rewards = json.loads(text)
    except RecursionError:
        raise _refusal(path, "nests too deeply") from None
    except ValueError as exc:
        raise _refusal(path, f"cannot be read as JSON: {exc}") from exc
    if not isinstance(rewards, dict):
        raise _refusal(path, f"holds {_shown(rewards)}, which is no object")
    for name, value in rewards.items():
        _check(path, name, value)
    return rewards


def _check(path: Path, name: str, value: object) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise _refusal(path, f"has the key {_shown(name)}, which is no valid Unicode") from None
    if not isinstance(value, int | float):
        raise _refusal(path, f"holds {_shown(value)} for {_shown(name)}, which is no number")
    try:
        is_finite = math.isfinite(value)
    except OverflowError:
        raise _refusal(
            path, f"holds a number for {_shown(name)} that is too large for a float"
        ) from None
    if not is_finite:
        raise _refusal(path, f"holds {value!r} for {_shown(name)}, which is no finite number")


def _text(path: Path) -> str:
    try:
        data = read_plain(path, MAX_REWARD_BYTES)
    except NotPlainError as exc:
        raise _refusal(path, str(exc)) from exc
    if not data:
        raise RewardFileEmptyError(f"The verifier's {_inside(path)} is empty: {_REMEDY}")
    try:
        return data.decode()
    except UnicodeDecodeError as exc:
        raise _refusal(path, f"is no UTF-8: {exc}") from exc


def _refusal(path: Path, problem: str) -> VerifierOutputParseError:
    return VerifierOutputParseError(f"The verifier's {_inside(path)} {problem}: {_REMEDY}")


def _inside(path: Path) -> str:
    """Where the file was in the sandbox."""
    return str(EnvironmentPaths().verifier_dir / path.name)


def _shown(value: object) -> str:
    try:
        text = ascii(value)
    except (RecursionError, ValueError):  # it nests deeply, or is a number of thousands of digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
