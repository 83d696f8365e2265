"""Everything that was said in a Strands conversation, also what the agent forgot since."""

from dataclasses import dataclass
from typing import Any

from strands import Agent
from strands.hooks import BeforeModelCallEvent, HookOrder, MessageAddedEvent


@dataclass
class _Entry:
    message: Any
    sealed: Any = None

    @property
    def current(self) -> Any:
        return self.message if self.sealed is None else self.sealed

    def seal(self) -> None:
        """Keep what the policy is about to be sent: managers shorten messages in place."""
        if self.sealed is None and isinstance(self.message.get("content"), list):
            self.sealed = {**self.message, "content": list(self.message["content"])}

    def take(self, replacement: Any) -> None:
        """Follow a message that the framework put in this one's place.

        Strands extends a message so, and shortens one so; only the former adds to what was said.
        """
        said, content = self.current["content"], replacement["content"]
        self.message = replacement
        if content[: len(said)] == said:
            self.sealed = None


class StrandsHistory:
    """The messages of an agent's conversation, in order.

    A conversation manager trims, shortens and summarises ``agent.messages`` in
    place; nothing of that removes a message from here, and a summary is one
    more message. Assigning ``agent.messages`` a list without any of these
    messages is the workflow's own decision and starts over.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._list: Any = agent.messages
        self._entries: list[_Entry] = []
        # Before the conversation manager's own hooks, which may trim.
        agent.add_hook(self._on_added, MessageAddedEvent, order=HookOrder.SDK_FIRST)
        agent.add_hook(self._on_model_call, BeforeModelCallEvent, order=HookOrder.SDK_FIRST)

    @property
    def messages(self) -> list[Any]:
        """Every message so far."""
        self._update()
        return [entry.current for entry in self._entries]

    def _on_added(self, event: MessageAddedEvent[Any]) -> None:
        self._update()

    def _on_model_call(self, event: BeforeModelCallEvent) -> None:
        self._update()
        for entry in self._entries:
            entry.seal()

    def _update(self) -> None:
        """Take in what ``agent.messages`` has and this has not, where it stands there."""
        held: list[Any] = self._agent.messages
        entries = self._entries
        known = {id(entry.message): index for index, entry in enumerate(entries)}
        if held is not self._list:
            self._list = held
            if known.keys().isdisjoint(map(id, held)):
                entries.clear()
                known.clear()
        tracked = {
            entry.message["tracking_id"]: index
            for index, entry in enumerate(entries)
            if entry.message.get("tracking_id")
        }
        runs: list[tuple[int, list[_Entry]]] = []
        fresh: list[_Entry] = []
        last: int | None = None
        for message in held:
            index = known.get(id(message))
            if index is None and message.get("tracking_id") in tracked:
                index = tracked[message["tracking_id"]]
                entries[index].take(message)
            if index is None:
                fresh.append(_Entry(message))
                continue
            if fresh:
                runs.append((index if last is None else last + 1, fresh))
                fresh = []
            last = index
        runs.append((len(entries) if last is None else last + 1, fresh))
        for position, run in reversed(runs):
            entries[position:position] = run
