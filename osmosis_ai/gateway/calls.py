"""A model call under way."""

from collections.abc import Callable
from datetime import UTC, datetime
from time import perf_counter
from typing import TYPE_CHECKING, Any

from osmosis_ai.common.model_calls import Api, CallRecord
from osmosis_ai.gateway.recordfile import Body
from osmosis_ai.gateway.redaction import Redactor
from osmosis_ai.gateway.tokens import Tokens, TokenTrace

if TYPE_CHECKING:
    from osmosis_ai.gateway.accumulator import Accumulator

_ERROR_CHARS = 1000


class OpenCall:
    """A call that has begun; ``commit`` turns it into a record, once."""

    def __init__(self, redact: Redactor, enter: Callable[["OpenCall", CallRecord], None]) -> None:
        self._redact = redact
        self._enter = enter
        self._started = perf_counter()
        self._committed = False
        self._started_at = datetime.now(UTC)
        self._first_token_sec: float | None = None
        self._status = 200
        self._error: str | None = None
        self.api: Api = "chat_completions"
        self.admitted = False
        self.refused = False
        self.streamed = False
        self.upstream_failed = False
        self.request: Body | None = None
        self.request_model: str | None = None
        self.response: Body | None = None
        self.answer: Accumulator | None = None
        self.tokens: TokenTrace | None = None

    def received(self, body: bytes, payload: dict[str, Any]) -> None:
        """Keep the request."""
        self.request = Body(body, payload)
        model = payload.get("model")
        self.request_model = model if isinstance(model, str) else None

    def saw_content(self) -> None:
        """Note the time of the first token."""
        if self._first_token_sec is None:
            self._first_token_sec = perf_counter() - self._started

    def fail(self, status: int, error: str) -> None:
        """Note what went wrong; the first reason stays."""
        if self._committed:
            return
        self._status = status
        if self._error is None:
            self._error = self._redact(error)[:_ERROR_CHARS]

    def commit(self) -> None:
        """Count and record the call and give its place free; later calls do nothing."""
        if self._committed:
            return
        answer = self.answer
        if answer is not None and answer.error is not None:
            self.upstream_failed = True
            self.fail(502 if self.streamed else self._status, answer.error)
        self._committed = True
        if self.streamed and answer is not None:
            self.response = answer.body()
        usage = answer.usage if answer is not None else None
        tokens = Tokens()
        if self.tokens is not None:
            counted = usage.completion_tokens if usage is not None else None
            tokens = self.tokens.finish(completion_tokens=counted, error=self._error)
        record = CallRecord(
            started_at=self._started_at,
            latency_to_first_token_sec=self._first_token_sec,
            total_sec=perf_counter() - self._started,
            request_model=self.request_model,
            model=answer.model if answer is not None else None,
            finish_reason=answer.finish_reason if answer is not None else None,
            usage=usage,
            status=self._status,
            error=self._error,
            api=self.api,
            prompt_token_ids=tokens.prompt_ids,
            completion_token_ids=tokens.completion_ids,
            logprobs=tokens.logprobs,
            token_gap=tokens.gap,
        )
        self._enter(self, record)
