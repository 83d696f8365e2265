"""What a server was asked to be, checked."""

import math
import os
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy.engine import URL

from osmosis_ai.rollout.server.auth import checked_api_key
from osmosis_ai.rollout.server.store.engine import STORE_URL_ENV, parse_url
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


@dataclass(frozen=True)
class Settings:
    """Everything that does not change while a server lives. Times are seconds.

    Attributes:
        api_key, read_api_key: who may do what; ``None`` serves this machine only.
        store_key: seals credentials and makes tokens, if there is one.
        keep: which records are kept.
        keep_files: whether files stay when their record is forgotten.
        grace_sec: how long a shutdown lets rollouts finish.
        takeover_sec: a server that gave no sign for so long is taken for dead.
    """

    windows: Windows
    root: Path
    store_url: URL
    api_key: str | None = field(repr=False)
    read_api_key: str | None = field(repr=False)
    store_key: str | None = field(repr=False)
    keep: Keep
    keep_files: bool
    grace_sec: float
    takeover_sec: float

    @property
    def shared(self) -> bool:
        """Whether other servers may use the same store."""
        return self.store_url.get_backend_name() == "postgresql"

    def keys(self) -> StoreKeys:
        """What makes tokens and seals credentials; may write a secret beside the database."""
        if self.store_key is not None:
            return StoreKeys.from_text(self.store_key)
        return StoreKeys.beside(Path(str(self.store_url.database)))


def make_settings(
    *,
    windows: Windows,
    root: Path,
    store_url: str | None,
    store_key: str | None,
    api_key: str | None,
    read_api_key: str | None,
    keep: Keep,
    keep_files: bool,
    grace_sec: float,
    takeover_sec: float,
) -> Settings:
    """Check the arguments, and take from the environment what was not given.

    Raises:
        ValueError: one is out of its range; the text names it.
    """
    _check_windows(windows)
    _check_range("record_retention_sec", keep.age_sec)
    _check_range("shutdown_grace_sec", grace_sec)
    _check_range("takeover_sec", takeover_sec, above_zero=True)
    if keep.count < 1:
        raise ValueError(f"max_records must be at least 1, got {keep.count}")
    api_key = _key("api_key", api_key, API_KEY_ENV)
    read_api_key = _key("read_api_key", read_api_key, READ_API_KEY_ENV)
    if read_api_key is not None and api_key is None:
        raise ValueError(f"read_api_key needs an api_key ({API_KEY_ENV}) beside it")
    if read_api_key is not None and read_api_key == api_key:
        raise ValueError("read_api_key must differ from api_key, or it would open everything")
    store_key = store_key or os.environ.get(STORE_KEY_ENV) or api_key
    url = parse_url(store_url or os.environ.get(STORE_URL_ENV) or None, root)
    if store_key is None and url.get_backend_name() == "postgresql":
        raise ValueError(
            f"a store in PostgreSQL needs store_key ({STORE_KEY_ENV}) or api_key ({API_KEY_ENV}), "
            "the same on every server that shares it"
        )
    return Settings(
        windows, root, url, api_key, read_api_key, store_key,
        keep, keep_files, grace_sec, takeover_sec,
    )  # fmt: skip


def _key(name: str, given: str | None, variable: str) -> str | None:
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
