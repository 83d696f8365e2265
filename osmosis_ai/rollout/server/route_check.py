"""Refuses at admission what could not reach its model later."""

from collections import OrderedDict

from osmosis_ai.gateway.addresses import checked_rollout_id
from osmosis_ai.rollout.backend.gateway import BackendGateway
from osmosis_ai.rollout.server.request_rules import model_key
from osmosis_ai.rollout.types.protocol import RolloutInitRequest

_REMEMBERED = 64


class RouteCheck:
    """Opens a rollout's endpoint and closes it again, once for equal URLs and keys."""

    def __init__(self, gateway: BackendGateway) -> None:
        self._gateway = gateway
        self._good: OrderedDict[tuple[str, str | None], None] = OrderedDict()

    async def check(self, request: RolloutInitRequest) -> None:
        """Look at a request.

        Raises:
            ValueError: the URL, the key or the id cannot be used.
        """
        checked_rollout_id(request.rollout_id)
        route = (request.chat_completions_url, model_key(request))
        if route in self._good:
            return
        async with self._gateway.open(request.rollout_id, route[0], api_key=route[1]):
            pass
        self._good[route] = None
        if len(self._good) > _REMEMBERED:
            self._good.popitem(last=False)
