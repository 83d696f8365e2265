"""The telemetry of one server."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING

import anyio

from osmosis_ai.common.log_context import LogContext, logging_about
from osmosis_ai.common.observer import observed_by
from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.telemetry.harmless import harmless
from osmosis_ai.telemetry.looplag import watching_loop
from osmosis_ai.telemetry.prometheus import CONTENT_TYPE, PrometheusMetrics
from osmosis_ai.telemetry.rollout import Metrics, RolloutTelemetry, outcome_labels
from osmosis_ai.telemetry.settings import Signals, wanted_signals

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

    from osmosis_ai.telemetry.exporting import Exporters
    from osmosis_ai.telemetry.spans import RolloutSpans

logger = logging.getLogger(__name__)

FLUSH_SEC = 5.0
"""How long a collector may delay the server's end."""


class Telemetry:
    """Metrics for ``/metrics``, and traces and metrics for an OTLP collector if one is named.

    ``instance_id`` tells this server from others in what is exported. Use
    ``running()`` while the server runs and ``rollout()`` around each rollout. No
    method raises because of telemetry.
    """

    content_type = CONTENT_TYPE

    def __init__(self, instance_id: str = "") -> None:
        self._instance_id = instance_id
        self._live: set[RolloutTelemetry] = set()
        self._prometheus = PrometheusMetrics(lambda: self.in_flight, lambda: self.queued)
        self._metrics: list[Metrics] = [self._prometheus]
        self._tracer: Tracer | None = None
        self._exporters: Exporters | None = None

    @property
    def in_flight(self) -> int:
        """Rollouts within ``rollout()``."""
        return len(self._live)

    @property
    def queued(self) -> int:
        """Those of them that wait for a slot."""
        return sum(rollout.queued for rollout in self._live)

    def prometheus(self) -> bytes:
        """The body of ``/metrics``; its type is ``content_type``."""
        return self._prometheus.text()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watch the event loop and export what the environment asks for, within the block."""
        signals = wanted_signals(os.environ)
        if signals.traces or signals.metrics:
            self._start_exporting(signals)
        try:
            with watching_loop(self._lag):
                yield
        finally:
            await self._flush()

    @contextmanager
    def rollout(self, rollout_id: str) -> Iterator[RolloutTelemetry]:
        """Observe one rollout, which the calling task runs within the block.

        Call ``outcome`` on what is yielded before the block ends.
        """
        rollout = RolloutTelemetry(self._metrics, self._spans(rollout_id))
        context = LogContext(rollout_id, *(rollout.spans.ids if rollout.spans else ()))
        self._live.add(rollout)
        with observed_by(rollout), logging_about(context):
            try:
                yield rollout
            except BaseException as exc:
                rollout.close(exc)
                raise
            finally:
                self._live.discard(rollout)
                rollout.close()

    @harmless
    def outcome(self, result: ExecutionResult) -> None:
        """Count a rollout that ended without running here: interrupted, or taken over."""
        for metrics in self._metrics:
            metrics.rollout_ended(*outcome_labels(result), None)

    @harmless
    def _lag(self, seconds: float) -> None:
        for metrics in self._metrics:
            metrics.loop_lag(seconds)

    @harmless
    def _start_exporting(self, signals: Signals) -> None:
        try:
            from osmosis_ai.telemetry.exporting import Exporters
            from osmosis_ai.telemetry.meters import OtelMetrics
        except ModuleNotFoundError as exc:
            logger.warning(
                "OpenTelemetry is asked for by the environment and off: %s. Install it with: "
                'pip install "osmosis-ai[otel]"',
                exc,
            )
            return
        self._exporters = Exporters(self._instance_id)
        if signals.traces:
            self._tracer = self._exporters.tracer()
        if signals.metrics:
            meter = self._exporters.meter()
            self._metrics.append(OtelMetrics(meter, lambda: self.in_flight, lambda: self.queued))

    def _spans(self, rollout_id: str) -> "Callable[[int], RolloutSpans] | None":
        if self._tracer is None:
            return None
        from osmosis_ai.telemetry.spans import RolloutSpans

        return partial(RolloutSpans, self._tracer, rollout_id)

    async def _flush(self) -> None:
        if self._exporters is None:
            return
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        close = harmless(self._exporters.close)

        @harmless
        def send() -> None:
            close()
            loop.call_soon_threadsafe(done.set)

        # A daemon, so that a collector that hangs holds up neither this nor the process.
        Thread(target=send, name="otlp-flush", daemon=True).start()
        with anyio.move_on_after(FLUSH_SEC, shield=True) as waiting:
            await done.wait()
        if waiting.cancelled_caught:
            logger.warning("The OTLP collector did not take the last telemetry in %s s", FLUSH_SEC)
