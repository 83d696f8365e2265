"""What ``/metrics`` serves."""

import asyncio
import time
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from local_backend import LocalBackend
from osmosis_ai.rollout import ExecutionResult, RolloutErrorCategory, RolloutStatus
from osmosis_ai.telemetry import Telemetry, observer
from osmosis_ai.telemetry.harmless import harmless
from tests.gateway.model_server import KEY, ModelServer
from tests.local_backend.gates import Gate, GatedWorkflow, request, until, workflow_config
from tests.telemetry.rollouts import Asks, AsksJudge, run_observed


def read(telemetry: Telemetry) -> dict[tuple[str, ...], float]:
    """Every sample by its name and its labels' values, in the labels' order; without buckets."""
    return {
        (sample.name, *(sample.labels[key] for key in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(telemetry.prometheus().decode())
        for sample in family.samples
        if not sample.name.endswith("_bucket")
    }


async def test_a_rollout_in_numbers(model: ModelServer) -> None:
    telemetry = Telemetry()
    async with telemetry.running():
        backend = LocalBackend(workflow=Asks, grader=AsksJudge, judge=model.url, judge_api_key=KEY)
        model.go_on.set()
        await run_observed(
            telemetry, backend, model.url, models=("plain", "slow-stream-stream", "fails")
        )
    seen = read(telemetry)
    expected = {
        ("osmosis_rollouts_in_flight",): 0,
        ("osmosis_rollouts_queued",): 0,
        ("osmosis_rollouts_total", "", "success"): 1,
        ("osmosis_rollout_duration_seconds_count",): 1,
        ("osmosis_gateway_calls_total", "chat_completions", "200", "policy"): 2,
        ("osmosis_gateway_calls_total", "chat_completions", "500", "policy"): 1,
        ("osmosis_gateway_calls_total", "chat_completions", "200", "judge"): 1,
        ("osmosis_gateway_call_duration_seconds_count", "policy"): 3,
        ("osmosis_gateway_time_to_first_token_seconds_count", "policy"): 1,
        ("osmosis_gateway_tokens_total", "judge", "input"): 11,
        ("osmosis_gateway_tokens_total", "judge", "output"): 3,
        ("osmosis_gateway_tokens_total", "judge", "cached"): 4,
        ("osmosis_gateway_tokens_total", "judge", "reasoning"): 2,
    }
    assert {key: seen.get(key) for key in expected} == expected
    for name in ("queue", "environment", "agent", "grading_queue", "grading", "persistence"):
        assert seen["osmosis_rollout_phase_duration_seconds_count", name] == 1
    assert seen["osmosis_rollout_phase_duration_seconds_sum", "grading"] >= 0.02
    assert seen["process_resident_memory_bytes",] > 1e6
    assert not any("r-1" in label for key in seen for label in key)


async def test_who_runs_and_who_waits() -> None:
    telemetry, gate = Telemetry(), Gate()
    backend = LocalBackend(workflow=GatedWorkflow, workflow_config=workflow_config(gate, 1))

    async def run(rollout_id: str) -> None:
        with telemetry.rollout(rollout_id) as observed:
            outcome = await backend.execute(request(rollout_id, grade=False))
            observed.outcome(outcome.result)

    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(run(f"r-{number}"))
        await until(lambda: gate.inside == 1 and telemetry.queued == 2)
        seen = read(telemetry)
        assert seen["osmosis_rollouts_in_flight",] == 3
        assert seen["osmosis_rollouts_queued",] == 2
        gate.opened.set()
    seen = read(telemetry)
    assert seen["osmosis_rollouts_in_flight",] == seen["osmosis_rollouts_queued",] == 0
    assert seen["osmosis_rollouts_total", "", "success"] == 3


def test_outcomes_by_category() -> None:
    telemetry = Telemetry()
    timeout = ExecutionResult(
        status=RolloutStatus.FAILURE,
        err_message="secret",
        err_category=RolloutErrorCategory.TIMEOUT,
    )
    with telemetry.rollout("a") as observed:
        observed.outcome(timeout)
    telemetry.outcome(ExecutionResult(status=RolloutStatus.CANCELLED))
    with telemetry.rollout("b") as observed:
        observed.handed_over()
    seen = read(telemetry)
    assert seen["osmosis_rollouts_total", "timeout", "failure"] == 1
    assert seen["osmosis_rollouts_total", "", "cancelled"] == 1
    assert seen["osmosis_rollouts_total", "", "handed_over"] == 1
    assert seen["osmosis_rollout_duration_seconds_count",] == 2
    assert b"secret" not in telemetry.prometheus()


async def test_a_blocked_loop_shows() -> None:
    telemetry = Telemetry()
    async with telemetry.running():
        await asyncio.sleep(0.12)
        time.sleep(0.3)  # noqa: ASYNC251 (a loop that is blocked is what this is about)
        await asyncio.sleep(0.12)
    lags = {
        sample.labels["le"]: sample.value
        for family in text_string_to_metric_families(telemetry.prometheus().decode())
        for sample in family.samples
        if sample.name == "osmosis_event_loop_lag_seconds_bucket"
    }
    assert lags["+Inf"] >= 4
    assert lags["+Inf"] - lags["0.1"] == 1, lags


async def test_two_servers_in_one_process_count_apart() -> None:
    first, second = Telemetry(), Telemetry()
    with first.rollout("a"):
        assert (first.in_flight, second.in_flight) == (1, 0)
    assert read(second).get(("osmosis_rollout_duration_seconds_count",)) == 0


async def test_a_fault_of_telemetry_stays_its_own(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("metrics broke")

    telemetry = Telemetry()
    for name in ("phase_ended", "model_call", "rollout_ended", "loop_lag"):
        monkeypatch.setattr(telemetry._prometheus, name, broken)
    async with telemetry.running():
        for number in range(2):
            with telemetry.rollout(f"r-{number}"):
                observer().begin("agent")
                observer().end()
    warned = [record for record in caplog.records if record.levelname == "WARNING"]
    assert len(warned) == len({record.getMessage() for record in warned}) > 0

    @harmless
    def cancelled() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cancelled()
