"""The metrics that ``/metrics`` serves, in a registry of their own."""

from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

from osmosis_ai.common.model_calls import Usage
from osmosis_ai.common.observer import ModelCall

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ROLLOUT_SEC = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1200, 3600, 7200)
_CALL_SEC = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640)
_LAG_SEC = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5)


class PrometheusMetrics:
    """Counts for one server. Every label has few values: no ids, models or messages."""

    def __init__(self, in_flight: Callable[[], int], queued: Callable[[], int]) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        Gauge(
            "osmosis_rollouts_in_flight", "Rollouts that run or wait here", registry=registry
        ).set_function(in_flight)
        Gauge(
            "osmosis_rollouts_queued", "Rollouts that wait for a slot", registry=registry
        ).set_function(queued)
        self._rollouts = Counter(
            "osmosis_rollouts_total",
            "Rollouts that ended, by status and error category",
            ["status", "category"],
            registry=registry,
        )
        self._rollout_sec = Histogram(
            "osmosis_rollout_duration_seconds",
            "From the start of a rollout to its result",
            buckets=_ROLLOUT_SEC,
            registry=registry,
        )
        self._phase_sec = Histogram(
            "osmosis_rollout_phase_duration_seconds",
            "Time that rollouts spent in each phase",
            ["phase"],
            buckets=_ROLLOUT_SEC,
            registry=registry,
        )
        self._calls = Counter(
            "osmosis_gateway_calls_total",
            "Model calls, by the HTTP status that the agent was given",
            ["kind", "api", "code"],
            registry=registry,
        )
        self._call_sec = Histogram(
            "osmosis_gateway_call_duration_seconds",
            "From a model call's head to the end of its answer",
            ["kind"],
            buckets=_CALL_SEC,
            registry=registry,
        )
        self._first_token_sec = Histogram(
            "osmosis_gateway_time_to_first_token_seconds",
            "From a streamed model call's head to its first content",
            ["kind"],
            buckets=_CALL_SEC,
            registry=registry,
        )
        self._tokens = Counter(
            "osmosis_gateway_tokens_total",
            "Tokens as upstreams counted them; cached is part of input, reasoning of output",
            ["kind", "type"],
            registry=registry,
        )
        self._lag_sec = Histogram(
            "osmosis_event_loop_lag_seconds",
            "How late the event loop ran a timer",
            buckets=_LAG_SEC,
            registry=registry,
        )

    def rollout_ended(self, status: str, category: str, seconds: float | None) -> None:
        """Count an outcome; ``seconds`` is ``None`` for one that another process began."""
        self._rollouts.labels(status, category).inc()
        if seconds is not None:
            self._rollout_sec.observe(seconds)

    def phase_ended(self, phase: str, seconds: float) -> None:
        """Count a phase."""
        self._phase_sec.labels(phase).observe(seconds)

    def model_call(self, call: ModelCall) -> None:
        """Count a model call and its tokens."""
        record, usage = call.record, call.record.usage or Usage()
        self._calls.labels(call.kind, record.api, str(record.status)).inc()
        self._call_sec.labels(call.kind).observe(record.total_sec)
        if record.latency_to_first_token_sec is not None:
            self._first_token_sec.labels(call.kind).observe(record.latency_to_first_token_sec)
        for name, count in (
            ("input", usage.prompt_tokens),
            ("output", usage.completion_tokens),
            ("cached", usage.cached_tokens),
            ("reasoning", usage.reasoning_tokens),
        ):
            self._tokens.labels(call.kind, name).inc(count)

    def loop_lag(self, seconds: float) -> None:
        """Count one look at the event loop."""
        self._lag_sec.observe(seconds)

    def text(self) -> bytes:
        """Everything in Prometheus' text format; its type is ``CONTENT_TYPE``."""
        return generate_latest(self.registry)
