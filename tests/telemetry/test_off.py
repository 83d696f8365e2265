"""Without an endpoint in the environment, nothing of OpenTelemetry is even imported."""

import subprocess
import sys

import pytest

from osmosis_ai.common.observer import NOBODY
from osmosis_ai.gateway import Gateway
from osmosis_ai.gateway.observing import call_observer, provider_name
from osmosis_ai.telemetry import Telemetry, observer, phase
from osmosis_ai.telemetry.settings import Signals, wanted_signals

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
METRICS = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"


@pytest.mark.parametrize(
    ("environ", "traces", "metrics"),
    [
        ({}, False, False),
        ({ENDPOINT: " "}, False, False),
        ({ENDPOINT: "http://c:4318"}, True, True),
        ({TRACES: "http://c:4318/v1/traces"}, True, False),
        ({METRICS: "http://c:4318/v1/metrics"}, False, True),
        ({ENDPOINT: "http://c:4318", "OTEL_SDK_DISABLED": "TRUE"}, False, False),
        ({ENDPOINT: "http://c:4318", "OTEL_SDK_DISABLED": "false"}, True, True),
        ({ENDPOINT: "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, False, True),
        ({ENDPOINT: "http://c:4318", "OTEL_METRICS_EXPORTER": "console, otlp"}, True, True),
        ({ENDPOINT: "http://c:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, False, False),
        (
            {
                ENDPOINT: "http://c:4318",
                "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
                "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/protobuf",
            },
            False,
            True,
        ),
    ],
)
def test_which_signals(environ: dict[str, str], traces: bool, metrics: bool) -> None:
    assert wanted_signals(environ) == Signals(traces, metrics)


def test_off_imports_nothing_of_it() -> None:
    code = (
        "import anyio, sys\n"
        "import osmosis_ai.telemetry, osmosis_ai.gateway\n"
        "assert 'prometheus_client' not in sys.modules\n"
        "from osmosis_ai.telemetry import Telemetry\n"
        "async def main():\n"
        "    telemetry = Telemetry()\n"
        "    async with telemetry.running():\n"
        "        with telemetry.rollout('r') as rollout:\n"
        "            rollout.begin('agent')\n"
        "    assert b'osmosis_rollout_duration_seconds_count 1.0' in telemetry.prometheus()\n"
        "anyio.run(main)\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


async def test_outside_a_rollout_nobody_listens() -> None:
    assert observer() is NOBODY
    assert call_observer("policy", "embedded/echo") is None
    with phase("agent"):
        observer().end()
    telemetry = Telemetry()
    with telemetry.rollout("r"):
        assert observer() is not NOBODY
    assert observer() is NOBODY
    async with Gateway() as gateway, gateway.open("r", "embedded/echo") as endpoint:
        assert endpoint.calls == []


@pytest.mark.parametrize(
    ("upstream", "provider"),
    [
        (None, "openai"),
        ("http://127.0.0.1:1/v1", "openai"),
        ("https://litellm/v1", "openai"),
        ("embedded/multiply?steps=2", "osmosis.embedded"),
        ("litellm/anthropic/claude-sonnet-4-5", "anthropic"),
        ("litellm/", "litellm"),
    ],
)
def test_the_provider_of_an_upstream(upstream: str | None, provider: str) -> None:
    assert provider_name(upstream) == provider
