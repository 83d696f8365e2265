"""What a server was asked to be, checked."""

import math
import os
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy.engine import URL

from osmosis_ai.rollout.server.auth import checked_api_key
from osmosis_ai.rollout.server.store.keys import STORE_KEY_ENV, StoreKeys
from osmosis_ai.rollout.server.store.retention import Keep

API_KEY_ENV = "OSMOSIS_ROLLOUT_API_KEY"
READ_API_KEY_ENV = "OSMOSIS_ROLLOUT_READ_API_KEY"


@dataclass(frozen=True)
class Windows:
    """Seconds: how long a poll waits, how long a lease lasts unpolled, how long results stay."""

    wait: float
    lease: float
    retention: float


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that does not change while a server lives. Times are seconds.

    Attributes:
        root: where trajectories and artifacts are.
        store_url: the database.
        store_key: seals credentials and makes tokens, if there is one.
        api_key, read_api_key: who may do what; ``None`` serves this machine only.
        keep: which records are kept.
        keep_files: whether files stay when their record is forgotten.
        grace_sec: how long a shutdown lets rollouts finish.
        takeover_sec: a server that gave no sign for so long is taken for dead.

    Raises:
        ValueError: one is out of its range, or does not go with another. The text
            uses the names of ``create_rollout_server``.
    """

    windows: Windows
    root: Path
    store_url: URL
    store_key: str | None = field(repr=False)
    api_key: str | None = field(repr=False)
    read_api_key: str | None = field(repr=False)
    keep: Keep
    keep_files: bool
    grace_sec: float
    takeover_sec: float

    def __post_init__(self) -> None:
        """Check the values."""
        _check_windows(self.windows)
        _check_range("record_retention_sec", self.keep.age_sec)
        _check_range("shutdown_grace_sec", self.grace_sec)
        _check_range("takeover_sec", self.takeover_sec, above_zero=True)
        if self.keep.count < 1:
            raise ValueError(f"max_records must be at least 1, got {self.keep.count}")
        if self.read_api_key is not None and self.api_key is None:
            raise ValueError(f"read_api_key needs an api_key ({API_KEY_ENV}) beside it")
        if self.read_api_key is not None and self.read_api_key == self.api_key:
            raise ValueError("read_api_key must differ from api_key, or it would open everything")
        if self.store_key is None and self.shared:
            raise ValueError(
                f"a store in PostgreSQL needs store_key ({STORE_KEY_ENV}) or api_key "
                f"({API_KEY_ENV}), the same on every server that shares it"
            )

    @property
    def shared(self) -> bool:
        """Whether other servers may use the same store."""
        return self.store_url.get_backend_name() == "postgresql"

    def keys(self) -> StoreKeys:
        """What makes tokens and seals credentials; may write a secret beside the database."""
        if self.store_key is not None:
            return StoreKeys.from_text(self.store_key)
        return StoreKeys.beside(Path(str(self.store_url.database)))


def given_api_key(name: str, given: str | None, variable: str) -> str | None:
    """The key that was given as the argument ``name``, else that of the environment's variable.

    Raises:
        ValueError: no header can carry it.
    """
    if given is None:
        given = os.environ.get(variable) or None
    return None if given is None else checked_api_key(given, name)


def _check_windows(windows: Windows) -> None:
    wait, lease = windows.wait, windows.lease
    _check_range("result_wait_timeout_sec", wait, above_zero=True)
    if not (math.isfinite(lease) and lease > wait):
        raise ValueError(
            "polling_lease_timeout_sec must be finite and exceed result_wait_timeout_sec "
            f"({wait!r}), or a waiting poll would outlive its lease; got {lease!r}"
        )
    _check_range("result_retention_sec", windows.retention)


def _check_range(name: str, value: float, *, above_zero: bool = False) -> None:
    if not math.isfinite(value) or value < 0 or (above_zero and value == 0):
        least = "above 0" if above_zero else "0 or more"
        raise ValueError(f"{name} must be finite and {least}, got {value!r}")
