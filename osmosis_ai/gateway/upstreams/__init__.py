"""What answers the gateway's calls: a server, a provider, or a policy in this package."""

from contextlib import AsyncExitStack
from typing import Self

from osmosis_ai.gateway.limits import GatewayLimits
from osmosis_ai.gateway.upstreams import embedded, litellm
from osmosis_ai.gateway.upstreams.base import Upstream
from osmosis_ai.gateway.upstreams.embedded import EmbeddedUpstream
from osmosis_ai.gateway.upstreams.http import HttpUpstream, make_session
from osmosis_ai.gateway.upstreams.litellm import LitellmUpstream
from osmosis_ai.gateway.upstreams.nothing import NoUpstream

__all__ = ["Upstream", "Upstreams"]


class Upstreams:
    """Makes a gateway's upstreams; they share connections and what was learned of servers."""

    def __init__(self) -> None:
        self._responses: dict[str, bool] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._session = await self._stack.enter_async_context(make_session())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def make(self, spec: str | None, *, api_key: str | None, limits: GatewayLimits) -> Upstream:
        """Turn what a user wrote into something that answers.

        Raises:
            ValueError: ``spec`` is none of the known forms, or a part of it is wrong.
        """
        if spec is None:
            return NoUpstream()
        if spec.startswith(embedded.PREFIX):
            return EmbeddedUpstream(spec)
        if spec.startswith(litellm.PREFIX):
            return LitellmUpstream(spec, api_key=api_key, limits=limits)
        if spec.startswith(("http://", "https://")):
            return HttpUpstream(
                spec,
                api_key=api_key,
                session=self._session,
                limits=limits,
                responses=self._responses,
            )
        raise ValueError(
            "upstream must be an http:// or https:// base URL, "
            f"'{embedded.PREFIX}<policy>' or '{litellm.PREFIX}<provider>/<model>', got {spec!r}"
        )
