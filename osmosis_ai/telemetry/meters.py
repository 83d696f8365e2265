"""A server's numbers as OpenTelemetry metrics; those of model calls by the GenAI conventions."""

from collections.abc import Callable, Iterable

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from osmosis_ai.common.observer import ModelCall
from osmosis_ai.telemetry.spans import call_attributes, call_error

_CALL_SEC = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
_TOKENS = [4**power for power in range(14)]
_CALL_LABELS = ("gen_ai.operation.name", "gen_ai.provider.name", "osmosis.model_call.kind")


class OtelMetrics:
    """Instruments of one server."""

    def __init__(self, meter: Meter, in_flight: Callable[[], int], queued: Callable[[], int]):
        def reading(value: Callable[[], int]) -> Callable[[CallbackOptions], Iterable[Observation]]:
            return lambda _: [Observation(value())]

        meter.create_observable_gauge("osmosis.rollouts.in_flight", [reading(in_flight)])
        meter.create_observable_gauge("osmosis.rollouts.queued", [reading(queued)])
        self._rollouts = meter.create_counter("osmosis.rollouts")
        self._rollout_sec = meter.create_histogram("osmosis.rollout.duration", unit="s")
        self._phase_sec = meter.create_histogram("osmosis.rollout.phase.duration", unit="s")
        self._lag_sec = meter.create_histogram("osmosis.event_loop.lag", unit="s")
        self._call_sec = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            explicit_bucket_boundaries_advisory=_CALL_SEC,
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )

    def rollout_ended(self, status: str, category: str, seconds: float | None) -> None:
        """Count an outcome; ``seconds`` is ``None`` for one that another process began."""
        attributes = {"osmosis.rollout.status": status}
        if category:
            attributes["error.type"] = category
        self._rollouts.add(1, attributes)
        if seconds is not None:
            self._rollout_sec.record(seconds, attributes)

    def phase_ended(self, phase: str, seconds: float) -> None:
        """Count a phase."""
        self._phase_sec.record(seconds, {"osmosis.rollout.phase": phase})

    def model_call(self, call: ModelCall) -> None:
        """Count a model call and its tokens."""
        known, record = call_attributes(call), call.record
        attributes = {name: known[name] for name in _CALL_LABELS}
        if record.usage is not None:
            for kind, count in (
                ("input", record.usage.prompt_tokens),
                ("output", record.usage.completion_tokens),
            ):
                self._tokens.record(count, attributes | {"gen_ai.token.type": kind})
        if error := call_error(record):
            attributes["error.type"] = error
        self._call_sec.record(record.total_sec, attributes)

    def loop_lag(self, seconds: float) -> None:
        """Count one look at the event loop."""
        self._lag_sec.record(seconds)
