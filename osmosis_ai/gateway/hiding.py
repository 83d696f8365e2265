"""Takes out of an answer what only the record is meant to hold."""

from typing import Any

from osmosis_ai.gateway.capture import LOGPROBS, PROMPT_TOKEN_IDS, TOKEN_IDS, USAGE
from osmosis_ai.gateway.jsonvalues import objects


def is_hidden_usage(chunk: dict[str, Any] | None, hidden: frozenset[str]) -> bool:
    """Whether a chunk is a usage event that the agent did not ask for."""
    return (
        USAGE in hidden
        and chunk is not None
        and chunk.get("choices") == []
        and bool(chunk.get("usage"))
    )


def concealed(answer: dict[str, Any], hidden: frozenset[str]) -> dict[str, Any] | None:
    """A copy of an answer or chunk without what is hidden; ``None`` when it holds none of it."""
    names = [name for name in (PROMPT_TOKEN_IDS, TOKEN_IDS) if name in hidden]
    shown: dict[str, Any] = {key: value for key, value in answer.items() if key not in names}
    changed = len(shown) != len(answer)
    choices = []
    for choice in objects(answer.get("choices")):
        kept = {key: value for key, value in choice.items() if key not in names}
        if LOGPROBS in hidden and kept.get("logprobs") is not None:
            kept["logprobs"] = None
            changed = True
        changed = changed or len(kept) != len(choice)
        choices.append(kept)
    if not changed:
        return None
    if "choices" in answer:
        shown["choices"] = choices
    return shown
