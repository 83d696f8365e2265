"""The callback protocol: what is posted to a trainer that gave URLs instead of polling."""

from osmosis_ai.rollout.server.callbacks.auth import ControllerAuth
from osmosis_ai.rollout.server.callbacks.bodies import completion_body, grader_body
from osmosis_ai.rollout.server.callbacks.entries import Callback, CallbackKind, Pending
from osmosis_ai.rollout.server.callbacks.limits import OutboxLimits
from osmosis_ai.rollout.server.callbacks.outbox import CallbackOutbox, Posted
from osmosis_ai.rollout.server.callbacks.store import CallbackStore
from osmosis_ai.rollout.server.callbacks.urls import checked_callback_url

__all__ = [
    "Callback",
    "CallbackKind",
    "CallbackOutbox",
    "CallbackStore",
    "ControllerAuth",
    "OutboxLimits",
    "Pending",
    "Posted",
    "checked_callback_url",
    "completion_body",
    "grader_body",
]
