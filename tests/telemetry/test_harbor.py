"""The phases of a Harbor trial, as Harbor announces them."""

from pathlib import Path

import pytest
from harbor.trial.queue import TrialQueue

from harbor_backend import HarborBackend
from osmosis_ai.rollout import ExecutionRequest
from osmosis_ai.telemetry import Telemetry
from tests.telemetry.collector import Collector

pytestmark = pytest.mark.docker

DATASET = Path(__file__).parents[2] / "tasks" / "dataset"


async def test_a_trial_in_phases(collector: Collector) -> None:
    telemetry = Telemetry()
    backend = HarborBackend(
        orchestrator=TrialQueue(n_concurrent=1),
        tasks_dir=DATASET,
        task_mode="dataset",
        agent="oracle",
    )
    async with telemetry.running():
        with telemetry.rollout("r-1") as observed:
            outcome = await backend.execute(
                ExecutionRequest(id="r-1", metadata={"harbor_task_id": "cron-next"})
            )
            observed.outcome(outcome.result)
        await backend.shutdown()
    whole = collector.named("rollout")
    assert whole.attributes["osmosis.rollout.status"] == "success"
    inside = [span for span in collector.spans if span.parent_id == whole.span_id]
    assert [span.name for span in inside] == ["queue", "environment", "agent", "grading"]
    timings = outcome.result.extra_fields["timings_sec"]
    seconds = {span.name: (span.end - span.start) / 1e9 for span in inside}
    assert seconds["agent"] == pytest.approx(timings["agent"], abs=0.1)
    assert seconds["grading"] == pytest.approx(timings["verifier"], abs=0.1)
    assert seconds["environment"] > timings["environment_setup"]
