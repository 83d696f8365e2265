"""The gateways alive in this process, so that a backend finds an endpoint by its URL."""

from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from osmosis_ai.gateway.endpoint import Endpoint
    from osmosis_ai.gateway.gateway import Gateway

LIVING: "WeakSet[Gateway]" = WeakSet()


def find_endpoint(url: str) -> "Endpoint | None":
    """The open endpoint that ``url`` addresses, over all gateways of this process."""
    for gateway in list(LIVING):
        if endpoint := gateway.find(url):
            return endpoint
    return None
