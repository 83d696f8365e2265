"""Telling whoever observes a rollout about its model calls."""

from collections.abc import Callable

from osmosis_ai.gateway.records import CallRecord, Kind
from osmosis_ai.telemetry.current import NOBODY, ModelCall, observer


def call_observer(kind: Kind, upstream: str | None) -> Callable[[CallRecord], None] | None:
    """What an endpoint opened by the calling task tells its calls to; ``None`` is nobody."""
    listening = observer()
    if listening is NOBODY:
        return None
    provider = provider_name(upstream)
    return lambda record: listening.model_call(ModelCall(kind, provider, record))


def provider_name(upstream: str | None) -> str:
    """``gen_ai.provider.name``: who answers, as far as the upstream's spelling says."""
    scheme, _, rest = (upstream or "").partition("/")
    if scheme == "litellm":
        return rest.partition("/")[0] or "litellm"
    return "osmosis.embedded" if scheme == "embedded" else "openai"
