"""OpenTelemetry's providers for one server, private to it.

They are not made global: libraries that agents use would send prompts through them.
"""

import os
from typing import TYPE_CHECKING

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Meter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Tracer

if TYPE_CHECKING:
    from collections.abc import Callable

SCOPE = "osmosis_ai.rollout"
_SERVICE = "osmosis-rollout-server"


class Exporters:
    """Sends spans and metrics to the collector that the environment names, in threads."""

    def __init__(self, instance_id: str) -> None:
        self._resource = _resource(instance_id)
        self._closers: list[Callable[[], None]] = []

    def tracer(self) -> Tracer:
        """A tracer whose spans are exported in batches."""
        provider = TracerProvider(resource=self._resource, shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._closers.append(provider.shutdown)
        return provider.get_tracer(SCOPE)

    def meter(self) -> Meter:
        """A meter that is read and exported every ``OTEL_METRIC_EXPORT_INTERVAL``."""
        reader = PeriodicExportingMetricReader(OTLPMetricExporter())
        provider = MeterProvider([reader], resource=self._resource, shutdown_on_exit=False)
        self._closers.append(provider.shutdown)
        return provider.get_meter(SCOPE)

    def close(self) -> None:
        """Send what is left; takes as long as the collector does."""
        for closer in self._closers:
            closer()


def _resource(instance_id: str) -> Resource:
    attributes = {"service.instance.id": instance_id}
    named = "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    if not os.environ.get("OTEL_SERVICE_NAME") and not named:
        attributes["service.name"] = _SERVICE
    return Resource.create(attributes)
