"""Counts, limits and records of one rollout's calls."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from osmosis_ai.common.model_calls import CallRecord, Usage
from osmosis_ai.gateway.calls import OpenCall
from osmosis_ai.gateway.errors import ApiError
from osmosis_ai.gateway.journal import Journal
from osmosis_ai.gateway.limits import GatewayLimits
from osmosis_ai.gateway.recordfile import NOTHING, Body
from osmosis_ai.gateway.records import EndpointSummary, LimitEvent, record_line
from osmosis_ai.gateway.redaction import Redactor
from osmosis_ai.gateway.tokens import Tokens

_REFUSALS_WRITTEN = 100
"""Refused calls cost an agent nothing, so only the first of them reach the file."""

_LIMIT_EVENTS = 20


class Ledger:
    """One rollout's book of calls. Its memory is bounded by the limits.

    ``observe`` is told of every call that is entered, and must not raise.
    """

    def __init__(
        self,
        limits: GatewayLimits,
        redact: Redactor,
        journal: Journal | None,
        observe: Callable[[CallRecord], None] | None = None,
    ) -> None:
        self.limits = limits
        self.redact = redact
        self._journal = journal
        self._observe = observe
        self._in_progress = 0
        self._admitted = 0
        self._records: deque[CallRecord] = deque(maxlen=limits.max_calls_in_memory)
        self._tokens_left = limits.max_tokens_in_memory
        self._summary = EndpointSummary()
        self._unwritten: deque[tuple[OpenCall, CallRecord]] = deque()

    @property
    def records(self) -> list[CallRecord]:
        """The latest records, oldest first."""
        return list(self._records)

    @property
    def summary(self) -> EndpointSummary:
        """Totals over all committed calls, also those whose records were dropped."""
        error = self._journal.error if self._journal is not None else None
        return replace(self._summary, records_error=error) if error else self._summary

    async def flush(self) -> None:
        """Return when all records are in the file."""
        if self._journal is not None:
            self._write_lines(self._journal)
            await self._journal.flush()

    @contextmanager
    def call(self) -> Iterator[OpenCall]:
        """Open a call that is recorded however the block ends."""
        call = OpenCall(self.redact, self._enter)
        try:
            yield call
        except (asyncio.CancelledError, ConnectionError):
            call.fail(499, "the agent disconnected before the answer was complete")
            raise
        except BaseException as exc:
            call.fail(500, f"the gateway failed: {exc!r}")
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
                    limit=name,
                )
        call.admitted = True
        self._admitted += 1
        self._in_progress += 1

    def exceeded(self, error: ApiError) -> None:
        """Note a limit that a call ran into."""
        if error.limit is None:
            return
        old, events = self._summary, self._summary.limit_events
        if len(events) < _LIMIT_EVENTS:
            value = getattr(self.limits, error.limit)
            message = self.redact(error.message)
            events = (*events, LimitEvent(datetime.now(UTC), error.limit, value, message))
        self._summary = replace(old, limits_exceeded=old.limits_exceeded + 1, limit_events=events)

    def _enter(self, call: OpenCall, record: CallRecord) -> None:
        """Take a finished call into the totals, the memory and the file."""
        if call.admitted:
            self._in_progress -= 1
        self._count(call, record)
        self._write(call, record)
        self._remember(call, record)
        if self._observe is not None:
            self._observe(record)

    def _write(self, call: OpenCall, record: CallRecord) -> None:
        """Have the call written once the agent has its answer, which this would delay."""
        if self._journal is None or self._journal.error:
            return
        if call.refused and self._summary.refused > _REFUSALS_WRITTEN:
            return
        if not self._unwritten:
            asyncio.get_running_loop().call_soon(self._write_lines, self._journal)
        self._unwritten.append((call, record))

    def _write_lines(self, journal: Journal) -> None:
        while self._unwritten:
            call, record = self._unwritten.popleft()
            line = record_line(
                record,
                streamed=call.streamed,
                request=self._json_text(call.request),
                response=self._json_text(call.response),
            )
            journal.write(self.redact(line))

    def _json_text(self, body: Body | None) -> str:
        if body is None:
            return NOTHING
        return body.json_text(self.limits.max_record_bytes, self.redact)

    def _remember(self, call: OpenCall, record: CallRecord) -> None:
        """Keep the record; without its tokens when there is no room for them."""
        limit = self.limits.max_calls_in_memory
        if len(self._records) == limit and limit:
            self._tokens_left += _size(self._records[0])
        if (size := _size(record)) > self._tokens_left:
            gap = "the token ids are not in memory: GatewayLimits.max_tokens_in_memory is used up"
            record = replace(
                record,
                prompt_token_ids=None,
                completion_token_ids=None,
                logprobs=None,
                token_gap=record.token_gap or gap,
            )
            self._note_gap(gap)
        else:
            self._tokens_left -= size
        self._records.append(record)

    def _note_gap(self, gap: str) -> None:
        old = self._summary
        self._summary = replace(old, gaps=old.gaps + 1, first_gap=old.first_gap or gap)

    def _count(self, call: OpenCall, record: CallRecord) -> None:
        old, usage = self._summary, record.usage or Usage()
        unmetered = call.admitted and record.error is None and record.usage is None
        cost = old.cost_usd
        if usage.cost_usd is not None:
            cost = (cost or 0.0) + usage.cost_usd
        self._summary = replace(
            old,
            calls=old.calls + call.admitted,
            refused=old.refused + call.refused,
            calls_without_usage=old.calls_without_usage + unmetered,
            prompt_tokens=old.prompt_tokens + usage.prompt_tokens,
            completion_tokens=old.completion_tokens + usage.completion_tokens,
            cached_tokens=old.cached_tokens + usage.cached_tokens,
            reasoning_tokens=old.reasoning_tokens + usage.reasoning_tokens,
            cost_usd=cost,
            errors=old.errors + (record.error is not None),
            upstream_errors=old.upstream_errors + call.upstream_failed,
            first_error=old.first_error or record.error,
            last_error=record.error or old.last_error,
        )
        if record.token_gap is not None:
            self._note_gap(record.token_gap)


def _size(record: CallRecord) -> int:
    return Tokens(record.prompt_token_ids, record.completion_token_ids, record.logprobs).size
