"""Counts, limits and records of one rollout's calls."""

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

from osmosis_ai.gateway.errors import ApiError
from osmosis_ai.gateway.limits import GatewayLimits
from osmosis_ai.gateway.records import (
    CallRecord,
    EndpointSummary,
    RecordFile,
    Usage,
    bounded_body,
    record_line,
)
from osmosis_ai.gateway.redaction import Redactor

_log = logging.getLogger(__name__)

_ERROR_CHARS = 1000
_REFUSALS_WRITTEN = 100
"""Refused calls cost an agent nothing, so only the first of them reach the file."""


class OpenCall:
    """A chat completion under way; ``commit`` turns it into a record, once."""

    def __init__(self, ledger: "Ledger") -> None:
        self._ledger = ledger
        self._started = perf_counter()
        self._committed = False
        self.started_at = datetime.now(UTC)
        self.admitted = False
        self.refused = False
        self.streamed = False
        self.request: Any = None
        self.request_model: str | None = None
        self.response: Any = None
        self.model: str | None = None
        self.finish_reason: str | None = None
        self.usage: Usage | None = None
        self.first_token_sec: float | None = None
        self.status = 200
        self.error: str | None = None

    def received(self, body: bytes, payload: dict[str, Any]) -> None:
        """Keep the request, bounded."""
        self.request = self.kept(body, payload)
        model = payload.get("model")
        self.request_model = model if isinstance(model, str) else None

    def kept(self, body: bytes, parsed: Any) -> Any:
        """What a record holds of a body: all of it, or its head."""
        return bounded_body(body, parsed, self._ledger.limits.max_record_bytes, self._ledger.redact)

    def saw_content(self) -> None:
        """Note the time of the first token."""
        if self.first_token_sec is None:
            self.first_token_sec = perf_counter() - self._started

    def fail(self, status: int, error: str) -> None:
        """Note what went wrong; the first reason stays."""
        self.status = status
        if self.error is None:
            self.error = self._ledger.redact(error)[:_ERROR_CHARS]

    def interrupted(self, cause: BaseException) -> None:
        """Note that the call never came to its end."""
        if self._committed:
            return
        if isinstance(cause, asyncio.CancelledError | ConnectionError):
            self.fail(499, "the agent disconnected before the answer was complete")
        else:
            self.fail(500, f"the gateway failed: {cause!r}")

    def commit(self) -> None:
        """Count and record the call and give its place free; later calls do nothing."""
        if self._committed:
            return
        self._committed = True
        record = CallRecord(
            started_at=self.started_at,
            latency_to_first_token_sec=self.first_token_sec,
            total_sec=perf_counter() - self._started,
            request_model=self.request_model,
            model=self.model,
            finish_reason=self.finish_reason,
            usage=self.usage,
            status=self.status,
            error=self.error,
        )
        self._ledger.enter(self, record)


class Ledger:
    """One rollout's book of calls. Its memory is bounded by the limits."""

    def __init__(
        self, limits: GatewayLimits, redact: Redactor, record_file: RecordFile | None
    ) -> None:
        self.limits = limits
        self.redact = redact
        self._record_file = record_file
        self._in_progress = 0
        self._admitted = 0
        self._records: deque[CallRecord] = deque(maxlen=limits.max_calls_in_memory)
        self._summary = EndpointSummary()

    @property
    def records(self) -> list[CallRecord]:
        """The latest records, oldest first."""
        return list(self._records)

    @property
    def summary(self) -> EndpointSummary:
        """Totals over all committed calls, also those whose records were dropped."""
        return self._summary

    @contextmanager
    def call(self) -> Iterator[OpenCall]:
        """Open a call that is recorded however the block ends."""
        call = OpenCall(self)
        try:
            yield call
        except BaseException as exc:
            call.interrupted(exc)
            raise
        finally:
            call.commit()

    def admit(self, call: OpenCall) -> None:
        """Count the call against the limits.

        Raises:
            ApiError: 429, a limit is reached.
        """
        limits, totals = self.limits, self._summary
        used = totals.prompt_tokens + totals.completion_tokens
        reached = [
            ("max_calls", limits.max_calls, self._admitted, "calls made", False),
            ("max_tokens", limits.max_tokens, used, "tokens used", False),
            ("max_concurrent", limits.max_concurrent, self._in_progress, "calls running", True),
        ]
        for name, limit, count, what, passes in reached:
            if limit is not None and count >= limit:
                call.refused = True
                raise ApiError(
                    429,
                    f"the rollout reached its limit {name}={limit} ({count} {what})",
                    kind="rate_limit_error",
                    code=f"{name}_reached",
                    retry=passes,
                )
        call.admitted = True
        self._admitted += 1
        self._in_progress += 1

    def enter(self, call: OpenCall, record: CallRecord) -> None:
        """Take a finished call into the totals, the memory and the file."""
        if call.admitted:
            self._in_progress -= 1
        self._records.append(record)
        self._count(call, record)
        if self._record_file is None or self._summary.records_error:
            return
        if call.refused and self._summary.refused > _REFUSALS_WRITTEN:
            return
        line = record_line(
            record, streamed=call.streamed, request=call.request, response=call.response
        )
        try:
            self._record_file.append(self.redact(line))
        except OSError as exc:
            _log.warning("calls are no longer written: %s", exc)
            self._summary = replace(self._summary, records_error=str(exc))

    def _count(self, call: OpenCall, record: CallRecord) -> None:
        old, usage = self._summary, record.usage or Usage()
        unmetered = call.admitted and record.error is None and record.usage is None
        self._summary = replace(
            old,
            calls=old.calls + call.admitted,
            refused=old.refused + call.refused,
            calls_without_usage=old.calls_without_usage + unmetered,
            prompt_tokens=old.prompt_tokens + usage.prompt_tokens,
            completion_tokens=old.completion_tokens + usage.completion_tokens,
            cached_tokens=old.cached_tokens + usage.cached_tokens,
            errors=old.errors + (record.error is not None),
            first_error=old.first_error or record.error,
            last_error=record.error or old.last_error,
        )
