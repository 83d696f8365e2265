"""What answers the gateway's calls: an HTTP server, or a policy in this package."""

from typing import TYPE_CHECKING

from osmosis_ai.gateway.upstreams.base import Upstream
from osmosis_ai.gateway.upstreams.embedded import PREFIX, EmbeddedUpstream
from osmosis_ai.gateway.upstreams.http import HttpUpstream

if TYPE_CHECKING:
    import httpx

    from osmosis_ai.gateway.limits import GatewayLimits

__all__ = ["Upstream", "make_upstream"]


def make_upstream(
    spec: str, *, api_key: str | None, client: "httpx.AsyncClient", limits: "GatewayLimits"
) -> Upstream:
    """Turn what a user wrote into something that answers.

    Raises:
        ValueError: ``spec`` is neither an http(s) URL nor a known embedded policy, or
            one of its parameters is wrong.
    """
    if spec.startswith(PREFIX):
        return EmbeddedUpstream(spec)
    if spec.startswith(("http://", "https://")):
        return HttpUpstream(spec, api_key=api_key, client=client, limits=limits)
    raise ValueError(
        f"upstream must be an http:// or https:// base URL, or '{PREFIX}<policy>', got {spec!r}"
    )
