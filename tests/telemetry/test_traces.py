"""What a collector gets of a rollout, and what it never gets."""

import asyncio
import itertools
import logging

import pytest

from local_backend import LocalBackend
from osmosis_ai.telemetry import Telemetry
from tests.gateway.model_server import KEY, ModelServer
from tests.telemetry.collector import Collector
from tests.telemetry.rollouts import LABEL, PROMPT, Asks, AsksJudge, Breaks, run_observed

CLIENT, INTERNAL = 3, 1


async def test_one_trace_per_rollout(collector: Collector, model: ModelServer) -> None:
    telemetry = Telemetry("server-1")
    async with telemetry.running():
        backend = LocalBackend(workflow=Asks, grader=AsksJudge, judge=model.url, judge_api_key=KEY)
        await run_observed(telemetry, backend, model.url, models=("plain", "gpt-4o-stream"))
    whole = collector.named("rollout")
    assert whole.parent_id == ""
    assert whole.attributes == {"osmosis.rollout.id": "r-1", "osmosis.rollout.status": "success"}
    assert whole.resource["service.name"] == "osmosis-rollout-server"
    assert whole.resource["service.instance.id"] == "server-1"
    assert {span.trace_id for span in collector.spans} == {whole.trace_id}
    phases = ["queue", "environment", "agent", "grading_queue", "grading", "persistence"]
    inside = [span for span in collector.spans if span.parent_id == whole.span_id]
    assert [span.name for span in inside] == phases
    assert all(span.attributes["osmosis.rollout.phase"] == span.name for span in inside)
    assert not any(span.failed for span in collector.spans)
    for earlier, later in itertools.pairwise(inside):
        assert whole.start <= earlier.start <= earlier.end <= later.start <= whole.end


async def test_model_calls_follow_the_genai_conventions(
    collector: Collector, model: ModelServer
) -> None:
    telemetry = Telemetry()
    async with telemetry.running():
        backend = LocalBackend(workflow=Asks, grader=AsksJudge, judge=model.url, judge_api_key=KEY)
        model.go_on.set()
        await run_observed(telemetry, backend, model.url, models=("gpt-4o", "slow-stream-stream"))
    call = collector.named("chat gpt-4o")
    assert call.kind == CLIENT
    assert call.parent_id == collector.named("agent").span_id
    assert call.attributes == {
        "osmosis.rollout.id": "r-1",
        "osmosis.model_call.kind": "policy",
        "osmosis.model_call.api": "chat_completions",
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.response.model": "served-gpt-4o",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "gen_ai.usage.reasoning.output_tokens": 2,
        "http.response.status_code": 200,
    }
    streamed = collector.named("chat slow-stream")
    assert streamed.attributes["gen_ai.response.time_to_first_chunk"] > 0
    judged = collector.named("chat plain")
    assert judged.parent_id == collector.named("grading").span_id
    assert judged.attributes["osmosis.model_call.kind"] == "judge"


async def test_nothing_that_anybody_wrote_is_sent(
    collector: Collector, model: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Not the prompt, the answer, the label, a key, a token, or an error that quotes them."""
    telemetry = Telemetry()
    async with telemetry.running():
        backend = LocalBackend(workflow=Asks, grader=AsksJudge, judge=model.url, judge_api_key=KEY)
        await run_observed(telemetry, backend, model.url, models=("plain", "fails", "garbage"))
        await run_observed(telemetry, LocalBackend(workflow=Breaks), model.url, "r-2")
    sent = b"".join(collector.bodies)
    assert b"r-2" in sent
    for text in (PROMPT, LABEL, KEY, "one two three", "could not", "bad key", "Bearer", "html"):
        assert text.encode() not in sent, text


async def test_a_failed_call_and_a_failed_rollout(collector: Collector, model: ModelServer) -> None:
    telemetry = Telemetry()
    async with telemetry.running():
        await run_observed(telemetry, LocalBackend(workflow=Breaks), model.url)
        backend = LocalBackend(workflow=Asks)
        await run_observed(telemetry, backend, model.url, "r-2", models=("fails",))
    first, second = (span for span in collector.spans if span.name == "rollout")
    assert (first.failed, first.attributes["error.type"]) == (True, "agent_error")
    assert first.trace_id != second.trace_id
    call = collector.named("chat fails")
    assert (call.failed, call.attributes["error.type"]) == (True, "500")
    assert (call.trace_id, call.attributes["gen_ai.request.model"]) == (second.trace_id, "fails")


async def test_a_rollout_that_is_cut_off(collector: Collector) -> None:
    telemetry = Telemetry()

    async def stay() -> None:
        with telemetry.rollout("r-1") as observed:
            observed.begin("agent")
            await asyncio.Event().wait()

    async with telemetry.running():
        task = asyncio.create_task(stay())
        await asyncio.sleep(0)
        assert telemetry.in_flight == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert telemetry.in_flight == 0
        with pytest.raises(OSError, match="disk"), telemetry.rollout("r-2"):
            raise OSError("disk")
    first, second = (span for span in collector.spans if span.name == "rollout")
    assert first.attributes["osmosis.rollout.status"] == "cancelled"
    assert collector.named("agent").attributes["error.type"] == "CancelledError"
    assert second.attributes["osmosis.rollout.status"] == "failure"
    assert second.attributes["error.type"] == "internal_error"


async def test_the_same_numbers_as_metrics(collector: Collector, model: ModelServer) -> None:
    telemetry = Telemetry()
    async with telemetry.running():
        backend = LocalBackend(workflow=Asks, grader=AsksJudge)
        await run_observed(telemetry, backend, model.url, models=("plain", "fails"))
        await asyncio.sleep(0.1)
    points = collector.points
    assert points["osmosis.rollouts"] == [({"osmosis.rollout.status": "success"}, 1.0)]
    (phase,) = [
        value
        for attributes, value in points["osmosis.rollout.phase.duration"]
        if attributes["osmosis.rollout.phase"] == "grading"
    ]
    assert phase >= 0.02
    common = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "osmosis.model_call.kind": "policy",
    }
    tokens = points["gen_ai.client.token.usage"]
    assert (common | {"gen_ai.token.type": "input"}, 11.0) in tokens
    assert (common | {"gen_ai.token.type": "output"}, 3.0) in tokens
    durations = [attributes for attributes, _ in points["gen_ai.client.operation.duration"]]
    assert common in durations
    assert common | {"error.type": "500"} in durations
    assert points["osmosis.rollouts.in_flight"] == [({}, 0.0)]
    assert "osmosis.event_loop.lag" in points


@pytest.mark.parametrize("trouble", ["nobody listens", "hangs", "answers 500"])
async def test_a_collector_in_trouble_harms_no_rollout(
    trouble: str,
    collector: Collector,
    model: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("osmosis_ai.telemetry.telemetry.FLUSH_SEC", 0.5)
    if trouble == "nobody listens":
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    elif trouble == "hangs":
        collector.answering.clear()
    else:
        collector.status = 500
    telemetry = Telemetry()
    loop = asyncio.get_running_loop()
    async with telemetry.running():
        result = await run_observed(telemetry, LocalBackend(workflow=Asks), model.url)
        leaving = loop.time()
    assert result.sample is not None
    assert loop.time() - leaving < 3
    if trouble == "hangs":
        assert "did not take the last telemetry" in caplog.text
    assert b'osmosis_rollouts_total{category="validation_error"' in telemetry.prometheus()


async def test_an_environment_that_cannot_work_is_a_warning(
    collector: Collector,
    model: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "/no/such/file")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "soon")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "-1")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "no-such-sampler")
    telemetry = Telemetry()
    async with telemetry.running():
        result = await run_observed(telemetry, LocalBackend(workflow=Asks), model.url)
    assert result.sample is not None
    assert any(record.levelno >= logging.WARNING for record in caplog.records)
