"""What a model server reports is merged where it is certain to belong."""

import logging
from typing import Any

import pytest

from osmosis_ai.rollout.trajectory import TrajectoryReport, report_from_response
from tests.rollout.trajectory.documents import document

TWO_TURNS: list[dict[str, Any]] = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": "a", "usage": {"prompt_tokens": 1, "completion_tokens": 1}},
    {"role": "user", "content": "on"},
    {"role": "assistant", "content": "b"},
]
CALLS: list[dict[str, Any]] = [
    {
        "prompt_tokens": 10,
        "cached_tokens": 2,
        "completion_token_ids": [1, 2],
        "logprobs": [-0.5, -1.0],
        "model_name": "policy-7",
    },
    {"prompt_tokens": 20, "cost_usd": 0.5},
]


def report(**fields: Any) -> TrajectoryReport:
    found = report_from_response({"trajectory": fields})
    assert found is not None
    return found


def test_as_many_calls_as_turns_are_merged_field_by_field() -> None:
    built = document(
        TWO_TURNS,
        report=report(model_name="m", samples={"any": {"llm_call_metrics": CALLS, "new": 1}}),
    )
    first, second = built["steps"][1], built["steps"][3]
    assert first["metrics"] == {
        "prompt_tokens": 10,
        "completion_tokens": 1,
        "cached_tokens": 2,
        "completion_token_ids": [1, 2],
        "logprobs": [-0.5, -1.0],
    }
    assert first["model_name"] == "policy-7"
    assert (second["metrics"], second["llm_call_count"]) == (
        {"prompt_tokens": 20, "cost_usd": 0.5},
        1,
    )
    assert built["agent"]["model_name"] == "m"
    assert built["final_metrics"] == {
        "total_prompt_tokens": 30,
        "total_completion_tokens": 1,
        "total_cached_tokens": 2,
        "total_cost_usd": 0.5,
        "total_steps": 4,
    }


def test_another_number_of_calls_is_kept_aside() -> None:
    built = document(TWO_TURNS, report=report(samples={"s": {"llm_call_metrics": CALLS[:1]}}))
    assert built["extra"]["osmosis"]["unmatched_llm_call_metrics"] == CALLS[:1]
    assert built["steps"][1]["metrics"]["prompt_tokens"] == 1
    assert built["final_metrics"]["total_prompt_tokens"] == 10


def test_several_samples_are_kept_aside() -> None:
    samples = {"a": {"llm_call_metrics": CALLS}, "b": {"model_name": "x"}}
    built = document(TWO_TURNS, report=report(samples=samples))
    kept = built["extra"]["osmosis"]["unmatched_sample_reports"]
    assert kept["a"]["llm_call_metrics"] == CALLS
    assert kept["b"]["model_name"] == "x"
    assert "metrics" not in built["steps"][3]


def test_reported_totals_win_but_the_number_of_steps_is_ours() -> None:
    totals = {"total_prompt_tokens": 99, "total_steps": 1000}
    built = document(
        TWO_TURNS,
        report=report(samples={"s": {"llm_call_metrics": CALLS, "final_metrics": totals}}),
    )
    assert built["final_metrics"] == {"total_prompt_tokens": 99, "total_steps": 4}


def test_malformed_totals_give_way_to_sums(caplog: pytest.LogCaptureFixture) -> None:
    sample = {"llm_call_metrics": CALLS, "final_metrics": {"total_prompt_tokens": "lots"}}
    built = document(TWO_TURNS, report=report(samples={"s": sample}))
    assert built["final_metrics"]["total_prompt_tokens"] == 30
    assert "totals" in caplog.text


def test_recorded_calls_count_without_a_report() -> None:
    built = document(TWO_TURNS, llm_calls=CALLS)
    assert built["steps"][3]["metrics"]["prompt_tokens"] == 20
    reported = report(samples={"s": {"llm_call_metrics": [{"prompt_tokens": 7}] * 2}})
    built = document(TWO_TURNS, llm_calls=CALLS, report=reported)
    assert built["final_metrics"]["total_prompt_tokens"] == 14


def test_malformed_records_are_ignored(caplog: pytest.LogCaptureFixture) -> None:
    built = document(TWO_TURNS, llm_calls=[{"prompt_tokens": "x"}])
    assert built["final_metrics"]["total_prompt_tokens"] == 1
    assert "records of model calls" in caplog.text


@pytest.mark.parametrize("body", [{}, None, "text", {"trajectory": None}])
def test_an_answer_without_a_report(body: object) -> None:
    assert report_from_response(body) is None


@pytest.mark.parametrize(
    "reported",
    [[], "x", {"samples": [1]}, {"samples": {"s": {"llm_call_metrics": [{"cost_usd": "nan"}]}}}],
)
def test_a_malformed_report_is_ignored(reported: object, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert report_from_response({"trajectory": reported}) is None
    assert len(caplog.records) == 1


def test_a_recorded_calls_start_is_its_steps_timestamp() -> None:
    moments = ["2026-01-02T03:04:05+00:00", "2026-01-02T03:04:06+00:00"]
    calls = [{"prompt_tokens": 1, "extra": {"started_at": moment}} for moment in moments]
    built = document(TWO_TURNS, llm_calls=calls)
    assert [step["timestamp"] for step in built["steps"] if step["source"] == "agent"] == moments
