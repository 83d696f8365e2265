"""Making a sample the same thing on both sides of a sandbox wall.

Every backend collects samples through here, also the one that never leaves its
process, so a grader reads the same values wherever the workflow ran.
"""

import copy
import dataclasses
import datetime
import enum
import logging
import math
import numbers
import os
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from pydantic import BaseModel

from osmosis_ai.common.texts import clean_text
from osmosis_ai.rollout.types.json_safe import is_written
from osmosis_ai.rollout.types.sample import RolloutSample

logger = logging.getLogger(__name__)

_MAX_DEPTH = 100


class _Kinds:
    """Kinds of values in messages: replaced by a ``repr``, or such that JSON has as text alone."""

    def __init__(self) -> None:
        self.replaced: set[str] = set()
        self.not_json: set[str] = set()

    def notes(self) -> Iterator[str]:
        """What is to be told of them."""
        if self.replaced:
            yield (
                "Sample messages hold objects that cannot leave a sandbox; their repr was kept: "
                + ", ".join(sorted(self.replaced))
            )
        if self.not_json:
            yield (
                "Sample messages hold what JSON cannot; it is text wherever they are written: "
                + ", ".join(sorted(self.not_json))
            )


def portable_sample(sample: object, *, phase: str, notes: list[str] | None = None) -> RolloutSample:
    """Return a validated, isolated copy of ``sample`` that any sandbox can ship.

    Messages keep JSON's types, bytes, numbers that are not finite and text that is
    no valid Unicode; other objects become their plain equivalent or their
    ``repr``. Metrics and extra fields lose what JSON cannot hold. Each kind of
    loss is logged once, and those of messages are added to ``notes``.

    Raises:
        TypeError: ``sample`` is not a ``RolloutSample``.
        pydantic.ValidationError: a field was changed to something invalid.
    """
    if not isinstance(sample, RolloutSample):
        raise TypeError(f"{phase} must yield a RolloutSample, not {type(sample).__name__}")
    kinds = _Kinds()
    trajectory = sample.trajectory_messages
    if "trajectory_messages" not in sample.model_fields_set and trajectory is None:
        trajectory = sample.messages  # they could not be copied as they are
    safe = sample.json_safe_copy()
    copied = RolloutSample.model_validate(
        {
            **safe.__dict__,
            "metrics": copy.deepcopy(safe.metrics),
            "extra_fields": copy.deepcopy(safe.extra_fields),
            "messages": _plain(sample.messages, kinds, ()),
            "trajectory_messages": None if trajectory is None else _plain(trajectory, kinds, ()),
        }
    )
    for note in kinds.notes():
        logger.warning("%s", note)
        if notes is not None:
            notes.append(f"{phase}: {note}")
    return copied


def _plain(value: Any, kinds: _Kinds, parents: tuple[int, ...]) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, enum.Enum):
        return _plain(value.value, kinds, parents)
    if isinstance(value, str):
        return _text(value, kinds)
    if isinstance(value, bytes | bytearray | memoryview):
        kinds.not_json.add("bytes")
        return bytes(value)
    if isinstance(value, numbers.Integral):
        if not is_written(int(value)):
            kinds.not_json.add("number of thousands of digits")
        return int(value)
    if isinstance(value, numbers.Real):
        if not math.isfinite(value):
            kinds.not_json.add("non-finite number")
        return float(value)
    if id(value) in parents:
        kinds.replaced.add("circular reference")
        return f"<circular {type(value).__name__}>"
    if len(parents) >= _MAX_DEPTH:
        kinds.replaced.add(f"nesting deeper than {_MAX_DEPTH}")
        return f"<{type(value).__name__} nested deeper than {_MAX_DEPTH} levels>"
    inner = (*parents, id(value))
    if isinstance(value, BaseModel):
        return _plain(value.model_dump(), kinds, inner)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return _plain(fields, kinds, inner)
    if isinstance(value, Mapping):
        return {_key(k, kinds): _plain(v, kinds, inner) for k, v in value.items()}
    if isinstance(value, Sequence | Set):
        return [_plain(item, kinds, inner) for item in value]
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    kinds.replaced.add(type(value).__name__)
    return _repr(value)


def _text(value: str, kinds: _Kinds) -> str:
    if clean_text(value) != value:
        kinds.not_json.add("lone surrogate")
    return str(value)


def _key(key: Any, kinds: _Kinds) -> str:
    if isinstance(key, str):
        return _text(key, kinds)
    if not isinstance(key, int | float | bool) and key is not None:
        kinds.replaced.add(f"{type(key).__name__} key")
    return str(key)


def _repr(value: object) -> str:
    """``repr`` without the memory address, which differs from run to run."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
