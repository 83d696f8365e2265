"""An OpenTelemetry collector over real HTTP that keeps what it is sent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class SeenSpan:
    """A span as it arrived; times are nanoseconds."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    start: int
    end: int
    failed: bool
    attributes: dict[str, Any]
    resource: dict[str, Any]


@dataclass
class Collector:
    """What arrived, and whether the collector answers."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    spans: list[SeenSpan] = field(default_factory=list)
    points: dict[str, list[tuple[dict[str, Any], float]]] = field(default_factory=dict)
    answering: asyncio.Event = field(default_factory=asyncio.Event)
    status: int = 200

    def named(self, name: str) -> SeenSpan:
        """The only span of this name."""
        (span,) = [span for span in self.spans if span.name == name]
        return span


@asynccontextmanager
async def serve_collector() -> AsyncIterator[Collector]:
    """Collect on a free port of the loopback until the block ends."""
    collector = Collector()
    collector.answering.set()

    async def traces(request: web.Request) -> web.Response:
        body = await request.read()
        await collector.answering.wait()
        collector.bodies.append(body)
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            resource = _plain(group.resource.attributes)
            for scope in group.scope_spans:
                collector.spans += [_seen(span, resource) for span in scope.spans]
        return web.Response(status=collector.status)

    async def metrics(request: web.Request) -> web.Response:
        body = await request.read()
        await collector.answering.wait()
        collector.bodies.append(body)
        for group in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            for scope in group.scope_metrics:
                for metric in scope.metrics:
                    kind = metric.WhichOneof("data")
                    collector.points[metric.name] = [
                        (_plain(point.attributes), _value(kind, point))
                        for point in getattr(metric, str(kind)).data_points
                    ]
        return web.Response(status=collector.status)

    app = web.Application()
    app.router.add_post("/v1/traces", traces)
    app.router.add_post("/v1/metrics", metrics)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        collector.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield collector
    finally:
        collector.answering.set()
        await runner.cleanup()


def _seen(span: Any, resource: dict[str, Any]) -> SeenSpan:
    return SeenSpan(
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        kind=span.kind,
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
        failed=span.status.code == 2,
        attributes=_plain(span.attributes),
        resource=resource,
    )


def _plain(attributes: Any) -> dict[str, Any]:
    return {item.key: _scalar(item.value) for item in attributes}


def _scalar(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_scalar(item) for item in value.array_value.values]
    return getattr(value, kind)


def _value(kind: str | None, point: Any) -> float:
    if kind == "histogram":
        return float(point.sum)
    return float(getattr(point, point.WhichOneof("value")))
