"""The durable store: SQLite for one server, PostgreSQL for several."""

from osmosis_ai.rollout.server.store.errors import (
    StoreClosedError,
    StoreError,
    StoreUnavailableError,
)
from osmosis_ai.rollout.server.store.keys import CredentialsLostError, StoreKeys
from osmosis_ai.rollout.server.store.store import Store, Wanted, open_store

__all__ = [
    "CredentialsLostError",
    "Store",
    "StoreClosedError",
    "StoreError",
    "StoreKeys",
    "StoreUnavailableError",
    "Wanted",
    "open_store",
]
