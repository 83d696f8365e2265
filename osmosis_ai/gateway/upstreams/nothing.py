"""The upstream of a rollout that has no model."""

from contextlib import AbstractAsyncContextManager

from osmosis_ai.gateway.errors import not_found
from osmosis_ai.gateway.upstreams.base import UpstreamCall, UpstreamReply


class NoUpstream:
    """Refuses every call and says what is missing."""

    def __init__(self) -> None:
        self.serves_responses: bool | None = False

    def send(self, call: UpstreamCall) -> AbstractAsyncContextManager[UpstreamReply]:
        """See ``Upstream.send``."""
        raise not_found(
            "this rollout has no model: its request names no chat_completions_url, "
            "so name one or do not call a model",
            code="no_model",
        )
