"""Making a sample the same thing on both sides of a sandbox wall.

Every backend collects samples through here, also the one that never leaves its
process, so a grader reads the same values wherever the workflow ran.
"""

import copy
import dataclasses
import datetime
import enum
import logging
import numbers
import os
import re
from collections.abc import Mapping, Sequence, Set
from typing import Any

from pydantic import BaseModel

from osmosis_ai.rollout.types.sample import RolloutSample

logger = logging.getLogger(__name__)

_MAX_DEPTH = 100


def portable_sample(sample: object, *, phase: str) -> RolloutSample:
    """Return a validated, isolated copy of ``sample`` that any sandbox can ship.

    Messages keep JSON's types and bytes; other objects become their plain
    equivalent or their ``repr``. Metrics and extra fields lose what JSON cannot
    hold. Each kind of loss is logged once.

    Raises:
        TypeError: ``sample`` is not a ``RolloutSample``.
        pydantic.ValidationError: a field was changed to something invalid.
    """
    if not isinstance(sample, RolloutSample):
        raise TypeError(f"{phase} must yield a RolloutSample, not {type(sample).__name__}")
    replaced: set[str] = set()
    trajectory = sample.trajectory_messages
    safe = sample.json_safe_copy()
    copied = RolloutSample.model_validate(
        {
            **safe.__dict__,
            "metrics": copy.deepcopy(safe.metrics),
            "extra_fields": copy.deepcopy(safe.extra_fields),
            "messages": _plain(sample.messages, replaced, ()),
            "trajectory_messages": None if trajectory is None else _plain(trajectory, replaced, ()),
        }
    )
    if replaced:
        logger.warning(
            "Sample messages hold objects that cannot leave a sandbox; their repr was kept: %s",
            ", ".join(sorted(replaced)),
        )
    return copied


def _plain(value: Any, replaced: set[str], parents: tuple[int, ...]) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, enum.Enum):
        return _plain(value.value, replaced, parents)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if id(value) in parents:
        replaced.add("circular reference")
        return f"<circular {type(value).__name__}>"
    if len(parents) >= _MAX_DEPTH:
        replaced.add(f"nesting deeper than {_MAX_DEPTH}")
        return f"<{type(value).__name__} nested deeper than {_MAX_DEPTH} levels>"
    inner = (*parents, id(value))
    if isinstance(value, BaseModel):
        return _plain(value.model_dump(), replaced, inner)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return _plain(fields, replaced, inner)
    if isinstance(value, Mapping):
        return {_key(k, replaced): _plain(v, replaced, inner) for k, v in value.items()}
    if isinstance(value, Sequence | Set):
        return [_plain(item, replaced, inner) for item in value]
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    replaced.add(type(value).__name__)
    return _repr(value)


def _key(key: Any, replaced: set[str]) -> str:
    if isinstance(key, str):
        return str(key)
    if not isinstance(key, int | float | bool) and key is not None:
        replaced.add(f"{type(key).__name__} key")
    return str(key)


def _repr(value: object) -> str:
    """``repr`` without the memory address, which differs from run to run."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
