"""Which signals to export, by OpenTelemetry's own environment variables."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

logger = logging.getLogger(__name__)

PROTOCOL = "http/protobuf"


@dataclass(frozen=True)
class Signals:
    """What is exported."""

    traces: bool
    metrics: bool


def wanted_signals(environ: Mapping[str, str]) -> Signals:
    """Read the variables; without an endpoint nothing is exported."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return Signals(False, False)
    return Signals(_wanted(environ, "TRACES"), _wanted(environ, "METRICS"))


def _wanted(environ: Mapping[str, str], signal: str) -> bool:
    endpoint = _either(environ, f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT", "_ENDPOINT")
    exporters = environ.get(f"OTEL_{signal}_EXPORTER", "").strip() or "otlp"
    if not endpoint or "otlp" not in [name.strip() for name in exporters.split(",")]:
        return False
    protocol = _either(environ, f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "_PROTOCOL")
    if protocol and protocol != PROTOCOL:
        logger.warning(
            "OpenTelemetry %s are off: the OTLP protocol %r is not supported; use %r",
            signal.lower(), protocol, PROTOCOL,
        )  # fmt: skip
        return False
    return True


def _either(environ: Mapping[str, str], own: str, common: str) -> str:
    return (environ.get(own) or environ.get(f"OTEL_EXPORTER_OTLP{common}") or "").strip()
