"""The session that records a conversation of the OpenAI Agents SDK as the rollout's sample."""

import copy
import logging
import uuid
from collections.abc import Sequence
from typing import Any

from agents.items import TResponseInputItem
from agents.memory.session import SessionABC

from osmosis_ai.rollout.context import SampleSource, get_rollout_context
from osmosis_ai.rollout.integrations.agents.openai_agents_items import Instructions, to_chat
from osmosis_ai.rollout.types.sample import RolloutSample

logger = logging.getLogger(__name__)


class OsmosisMemorySession(SessionABC):
    """A session in memory that is the sample's source of the rollout it is made in.

    Outside a rollout it is an ordinary session.

    Raises:
        ValueError: the rollout has a sample source already.
    """

    def __init__(self) -> None:
        self.session_id = uuid.uuid4().hex
        self.items: list[TResponseInputItem] = []
        self._source = SessionSampleSource(self)
        context = get_rollout_context()
        if context is not None:
            context.set_sample_source(self._source)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the latest ``limit`` items, or all, oldest first.

        Like every method, raises ``RuntimeError`` inside a rollout that this
        session was not made in.
        """
        self._check()
        if limit is None:
            return list(self.items)
        return self.items[-limit:] if limit > 0 else []

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append ``items``."""
        self._check()
        self.items.extend(items)
        self._source.recorded = self._source.recorded or bool(items)

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove and return the latest item; ``None`` from an empty session."""
        self._check()
        return self.items.pop() if self.items else None

    async def clear_session(self) -> None:
        """Remove all items."""
        self._check()
        self.items.clear()

    def _check(self) -> None:
        context = get_rollout_context()
        if context is not None and context.sample_source is not self._source:
            raise RuntimeError(
                f"This OsmosisMemorySession is not registered with rollout "
                f"{context.rollout_id!r}: make one session inside each run()"
            )


class SessionSampleSource(SampleSource):
    """The items of an ``OsmosisMemorySession`` as a sample.

    ``messages`` are the SDK's own items; ``trajectory_messages`` a
    chat-completions copy with the agents' instructions in it.
    """

    def __init__(self, session: OsmosisMemorySession) -> None:
        self.session = session
        self.recorded = False
        self._called = False
        self._instructions: list[Instructions] = []

    def note_call(self, instructions: str | None, items: Sequence[Any]) -> None:
        """Note the system prompt of a model call whose input was ``items``.

        A call on other items than the session's (an agent used as a tool) has
        a conversation of its own, so its system prompt is not this one's.
        """
        first, self._called = not self._called, True
        held = self.session.items
        self._instructions = [i for i in self._instructions if i.position <= len(held)]
        if not instructions or not _continues(held, items):
            return
        if not self._instructions or self._instructions[-1].text != instructions:
            self._instructions.append(Instructions(0 if first else len(held), instructions))

    async def get_sample(self) -> RolloutSample:
        """Return the conversation so far.

        Raises:
            RuntimeError: the policy was called, but no run used the session.
        """
        if self._called and not self.recorded:
            raise RuntimeError(
                "The OsmosisMemorySession recorded nothing although the policy was called: pass "
                "session=session to Runner.run() and Runner.run_streamed()"
            )
        items = list(self.session.items)
        return _sample(items, self._instructions)

    async def get_preview(self, max_messages: int) -> RolloutSample | None:
        """Return a copy of the latest ``max_messages`` items; ``None`` for none."""
        if max_messages <= 0:
            return None
        return _sample(copy.deepcopy(self.session.items[-max_messages:]), [])


def _continues(held: Sequence[Any], items: Sequence[Any]) -> bool:
    return not held or (bool(items) and _gist(held[-1]) == _gist(items[-1]))


def _gist(item: Any) -> Any:
    """What stays of an item on its way through the SDK's normalisation."""
    call_id = item.get("call_id")
    return (item.get("type"), call_id) if call_id else (item.get("role"), item.get("content"))


def _sample(items: list[Any], instructions: list[Instructions]) -> RolloutSample:
    try:
        trajectory = to_chat(items, instructions)
    except Exception as exc:
        logger.warning(
            "Failed to convert OpenAI Agents items for trajectory persistence: %s: %s",
            type(exc).__name__,
            exc,
        )
        trajectory = None
    return RolloutSample(messages=items, trajectory_messages=trajectory)
