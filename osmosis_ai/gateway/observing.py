"""Tells the observer of a rollout about its model calls."""

from collections.abc import Callable

from osmosis_ai.common.model_calls import CallRecord, Kind
from osmosis_ai.common.observer import NOBODY, ModelCall, observer


def call_observer(kind: Kind, upstream: str | None) -> Callable[[CallRecord], None] | None:
    """Return what an endpoint's finished calls are to be told to.

    That is the observer of the rollout that the calling task runs; ``None`` where
    there is none.
    """
    listening = observer()
    if listening is NOBODY:
        return None
    provider = provider_name(upstream)
    return lambda record: listening.model_call(ModelCall(kind, provider, record))


def provider_name(upstream: str | None) -> str:
    """Return ``gen_ai.provider.name``: who answers, as far as the upstream's spelling tells."""
    scheme, _, rest = (upstream or "").partition("/")
    if scheme == "litellm":
        return rest.partition("/")[0] or "litellm"
    return "osmosis.embedded" if scheme == "embedded" else "openai"
