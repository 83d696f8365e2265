"""What the parts of one running server share."""

from dataclasses import dataclass

from osmosis_ai.rollout.backend.base import ExecutionBackend
from osmosis_ai.rollout.backend.gateway import BackendGateway
from osmosis_ai.rollout.server.callbacks import CallbackOutbox
from osmosis_ai.rollout.server.settings import Settings
from osmosis_ai.rollout.server.store import Store
from osmosis_ai.rollout.server.store.callbacks import StoredCallbacks
from osmosis_ai.telemetry.telemetry import Telemetry


@dataclass(frozen=True)
class ServerContext:
    """One running server, for everything that works for it.

    Attributes:
        server_id: names this server in the store; another one after each start.
        callbacks: what the store holds of this server's callbacks.
        outbox: delivers them.
        gateway: where rollouts get their endpoints: the backend's, or one of the server's own.
    """

    server_id: str
    settings: Settings
    backend: ExecutionBackend
    gateway: BackendGateway
    store: Store
    callbacks: StoredCallbacks
    outbox: CallbackOutbox
    telemetry: Telemetry
