"""Rollouts as OpenTelemetry spans.

Model calls follow the GenAI semantic conventions. No attribute holds a message, a
prompt, an error's text or anything else that an agent, a model or a caller wrote,
except the rollout's id and the names of models.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from osmosis_ai.common.model_calls import CallRecord
from osmosis_ai.common.observer import ModelCall

_NAME_CHARS = 200
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class RolloutSpans:
    """The spans of one rollout: the whole, one per phase, one per model call."""

    def __init__(self, tracer: Tracer, rollout_id: str, at_ns: int) -> None:
        self._tracer = tracer
        self._id = {"osmosis.rollout.id": rollout_id}
        # Never the caller's span: one trace is one rollout.
        self._whole = tracer.start_span("rollout", Context(), attributes=self._id, start_time=at_ns)
        self.context = set_span_in_context(self._whole, Context())
        self._phases: list[tuple[int, Span]] = []

    @property
    def ids(self) -> tuple[str, str]:
        """Trace and span id, hexadecimal."""
        context = self._whole.get_span_context()
        return f"{context.trace_id:032x}", f"{context.span_id:016x}"

    def begin(self, phase: str, at_ns: int) -> None:
        """Open a phase."""
        attributes = self._id | {"osmosis.rollout.phase": phase}
        span = self._tracer.start_span(phase, self.context, attributes=attributes, start_time=at_ns)
        self._phases.append((at_ns, span))

    def end(self, at_ns: int, error: str | None) -> None:
        """Close the phase opened last."""
        _close(self._phases[-1][1], at_ns, error)

    def model_call(self, call: ModelCall) -> None:
        """A finished call, within the phase that it began in."""
        record = call.record
        began = (record.started_at - _EPOCH) // _MICROSECOND * 1000
        parent = next((span for at, span in reversed(self._phases) if at <= began), self._whole)
        span = self._tracer.start_span(
            f"chat {record.request_model[:_NAME_CHARS]}" if record.request_model else "chat",
            set_span_in_context(parent, self.context),
            kind=SpanKind.CLIENT,
            attributes=self._id | call_attributes(call),
            start_time=began,
        )
        _close(span, began + int(record.total_sec * 1e9), call_error(record))

    def close(self, at_ns: int, status: str, category: str | None) -> None:
        """End the rollout."""
        self._whole.set_attribute("osmosis.rollout.status", status)
        _close(self._whole, at_ns, category)


def call_attributes(call: ModelCall) -> dict[str, Any]:
    """A model call by the GenAI conventions."""
    record, usage = call.record, call.record.usage
    found = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": call.provider,
        "gen_ai.request.model": record.request_model and record.request_model[:_NAME_CHARS],
        "gen_ai.response.model": record.model and record.model[:_NAME_CHARS],
        "gen_ai.response.finish_reasons": record.finish_reason
        and [record.finish_reason[:_NAME_CHARS]],
        "gen_ai.response.time_to_first_chunk": record.latency_to_first_token_sec,
        "gen_ai.usage.input_tokens": usage and usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage and usage.completion_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage and usage.cached_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage and usage.reasoning_tokens,
        "http.response.status_code": record.status,
        "osmosis.model_call.kind": call.kind,
        "osmosis.model_call.api": record.api,
    }
    return {name: value for name, value in found.items() if value is not None}


def call_error(record: CallRecord) -> str | None:
    """A failed call's ``error.type``: its status, never its text, which may quote a prompt."""
    return None if record.error is None else str(record.status)


def _close(span: Span, at_ns: int, error: str | None) -> None:
    if error is not None:
        span.set_attribute("error.type", error)
        span.set_status(Status(StatusCode.ERROR))
    span.end(at_ns)
