"""What a rollout server tells of the rollouts that it is sent."""

import json

from prometheus_client.parser import text_string_to_metric_families

from local_backend import LocalBackend
from osmosis_ai.rollout.server import create_rollout_server
from tests.gateway.model_server import KEY, ModelServer
from tests.rollout.server.serving import serve
from tests.telemetry.collector import Collector
from tests.telemetry.rollouts import LABEL, PROMPT, Asks, AsksJudge

API_KEY = "the-servers-own-key"


async def test_a_rollout_over_http(collector: Collector, model: ModelServer) -> None:
    backend = LocalBackend(workflow=Asks, grader=AsksJudge, judge=model.url, judge_api_key=KEY)
    app = create_rollout_server(backend=backend, api_key=API_KEY, read_api_key="reader")
    async with serve(app, Authorization=f"Bearer {API_KEY}") as caller:
        token = await caller.admitted(
            initial_messages=[{"role": "user", "content": PROMPT}],
            label=LABEL,
            metadata={"models": ["plain", "fails"]},
            chat_completions_url=model.url,
            llm_api_key=KEY,
        )
        assert (await caller.result(token))["status"] == "success"
        answer = await caller.http.get("/metrics", headers={"Authorization": "Bearer reader"})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    counted = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    assert counted["osmosis_rollouts_total", "", "success"] == 1
    assert counted["osmosis_gateway_calls_total", "200", "chat_completions", "judge"] == 1
    whole = collector.named("rollout")
    assert {span.trace_id for span in collector.spans} == {whole.trace_id}
    inside = [span for span in collector.spans if span.parent_id == whole.span_id]
    assert [span.name for span in inside] == [
        "queue", "environment", "agent", "grading_queue", "grading", "persistence",
    ]  # fmt: skip
    calls = {span.name: span.parent_id for span in collector.spans if "chat" in span.name}
    assert calls["chat fails"] == collector.named("agent").span_id
    sent = b"".join(collector.bodies) + answer.content
    for secret in (PROMPT, LABEL, KEY, API_KEY, token, json.dumps(token)):
        assert secret.encode() not in sent, secret


async def test_a_rollout_that_is_refused_is_not_counted(model: ModelServer) -> None:
    app = create_rollout_server(backend=LocalBackend(workflow=Asks))
    async with serve(app) as caller:
        assert (await caller.start(chat_completions_url="ftp://nowhere")).status_code == 422
        text = (await caller.http.get("/metrics")).text
    assert "osmosis_rollouts_in_flight 0.0" in text
    assert "osmosis_rollouts_total{" not in text
