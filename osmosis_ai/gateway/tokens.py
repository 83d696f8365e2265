"""The exact tokens of one call: what the policy saw and said, and whether it is all there."""

from array import array
from dataclasses import dataclass
from typing import Any

from osmosis_ai.gateway.jsonvalues import objects

_LARGEST_ID = 2**63 - 1


@dataclass(frozen=True)
class Tokens:
    """Token ids and log probabilities as the upstream sent them.

    Attributes:
        prompt_ids: the prompt's ids; ``None`` when the upstream gave none.
        completion_ids: the ids sampled for the first choice, in order.
        logprobs: the log probability of each sampled token.
        gap: why this is not an exact record; ``None`` when it is, and when nobody asked
            for ids and none came.
    """

    prompt_ids: "array[int] | None" = None
    completion_ids: "array[int] | None" = None
    logprobs: "array[float] | None" = None
    gap: str | None = None

    @property
    def size(self) -> int:
        """How many numbers are held."""
        return sum(
            len(part) for part in (self.prompt_ids, self.completion_ids, self.logprobs) if part
        )


class TokenTrace:
    """Collects the tokens of one answer, whole or chunk by chunk.

    Understood are vLLM's shape (``prompt_token_ids`` on the answer, or on the first
    chunks; ``choices[].token_ids``), SGLang's (both on the choice), and OpenAI's
    ``choices[].logprobs.content[].logprob``.
    """

    def __init__(self, *, ids_asked: bool, logprobs_asked: bool, max_tokens: int) -> None:
        self._ids_expected = ids_asked
        self._logprobs_expected = logprobs_asked
        self._max_tokens = max_tokens
        self._prompt: array[int] | None = None
        self._completion: array[int] | None = None
        self._logprobs: array[float] | None = None
        self._bare_content = False
        self._gap: str | None = None

    def add(self, answer: dict[str, Any]) -> None:
        """Take a whole answer or a chunk of one."""
        if (ids := answer.get("prompt_token_ids")) is not None:
            self._take_prompt(ids)
        for choice in objects(answer.get("choices")):
            if (ids := choice.get("prompt_token_ids")) is not None:
                self._take_prompt(ids)
            if choice.get("index", 0) != 0:
                self._note("the answer has several choices; which one the agent used is unknown")
                continue
            self._take_choice(choice)

    def finish(self, *, completion_tokens: int | None, error: str | None) -> Tokens:
        """Judge what came; ``completion_tokens`` is the upstream's own count."""
        if self._completion is not None or self._ids_expected:
            self._judge_ids(completion_tokens, error)
        if self._logprobs_expected or (self._logprobs is not None and self._completion is not None):
            self._judge_logprobs()
        return Tokens(self._prompt, self._completion, self._logprobs, self._gap)

    def _take_prompt(self, value: Any) -> None:
        ids = self._ids(value, "prompt_token_ids")
        if ids is None:
            return
        if self._prompt is not None and self._prompt != ids:
            self._note("the upstream gave two different lists of prompt token ids")
        self._prompt = ids

    def _take_choice(self, choice: dict[str, Any]) -> None:
        value = choice.get("token_ids")
        if value is None:
            self._bare_content = self._bare_content or _carries_content(choice)
        elif (ids := self._ids(value, "token_ids")) is not None:
            if self._completion is None:
                self._completion = array("q")
            if len(self._completion) + len(ids) > self._max_tokens:
                self._note(_too_many(self._max_tokens))
                return
            self._completion.extend(ids)
        logprobs = choice.get("logprobs")
        if isinstance(logprobs, dict) and isinstance(content := logprobs.get("content"), list):
            self._take_logprobs(content)

    def _take_logprobs(self, content: list[Any]) -> None:
        if self._logprobs is None:
            self._logprobs = array("d")
        if len(self._logprobs) + len(content) > self._max_tokens:
            self._note(_too_many(self._max_tokens))
            return
        try:
            self._logprobs.extend(float(entry["logprob"]) for entry in content)
        except (KeyError, TypeError, ValueError):
            self._note("a log probability of the upstream is not a number")

    def _ids(self, value: Any, field: str) -> "array[int] | None":
        if not isinstance(value, list) or not all(_is_id(item) for item in value):
            self._note(f"the upstream's {field} is not a list of token ids")
            return None
        if len(value) > self._max_tokens:
            self._note(_too_many(self._max_tokens))
            return None
        return array("q", value)

    def _judge_ids(self, completion_tokens: int | None, error: str | None) -> None:
        if error is not None:
            self._note(f"the call failed: {error}")
        if self._completion is None:
            self._note("the upstream gave no completion token ids")
            return
        if self._bare_content:
            self._note("a part of the answer came without token ids")
        if self._prompt is None:
            self._note("the upstream gave no prompt token ids")
        if completion_tokens is not None and completion_tokens != len(self._completion):
            self._note(
                f"the upstream counted {completion_tokens} completion tokens "
                f"and gave {len(self._completion)} ids"
            )

    def _judge_logprobs(self) -> None:
        if self._logprobs is None:
            self._note("the upstream gave no log probabilities")
        elif self._completion is not None and len(self._logprobs) != len(self._completion):
            self._note(
                f"the upstream gave {len(self._logprobs)} log probabilities "
                f"for {len(self._completion)} token ids"
            )

    def _note(self, gap: str) -> None:
        self._gap = self._gap or gap


def _is_id(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _LARGEST_ID


def _carries_content(choice: dict[str, Any]) -> bool:
    said = choice.get("delta", choice.get("message"))
    return isinstance(said, dict) and any(value for key, value in said.items() if key != "role")


def _too_many(limit: int) -> str:
    return f"the record was truncated at {limit} tokens (GatewayLimits.max_record_tokens)"
