"""What a run's outcomes mean, by table."""

from typing import Any

import pytest

from osmosis_ai.cli.output import duration, first_line, size
from osmosis_ai.cli.trials.plan import Trial
from osmosis_ai.cli.trials.results import exit_code, mean_reward, trial_report
from osmosis_ai.rollout.types.execution import ExecutionOutcome, ExecutionResult
from osmosis_ai.rollout.types.sample import RolloutSample
from osmosis_ai.rollout.types.status import RolloutErrorCategory, RolloutStatus

TRIAL = Trial("task", 1, "task-1-abc")


def graded(reward: float | None, **extra: Any) -> ExecutionOutcome:
    workflow = ExecutionResult(status=RolloutStatus.SUCCESS, extra_fields={"phase": "verifier"})
    sample = RolloutSample(reward=reward, extra_fields=extra)
    grader = ExecutionResult(
        status=RolloutStatus.SUCCESS, sample=sample, extra_fields={"phase": "verifier"}
    )
    return ExecutionOutcome(workflow=workflow, grader=grader)


def failed(category: str, phase: str | None) -> ExecutionOutcome:
    extra = {} if phase is None else {"phase": phase, "timings_sec": {"total": 2.0}}
    workflow = ExecutionResult(
        status=RolloutStatus.FAILURE,
        err_message="it broke",
        err_category=RolloutErrorCategory(category),
        extra_fields=extra,
    )
    return ExecutionOutcome(workflow=workflow)


@pytest.mark.parametrize(
    ("category", "phase", "could_run"),
    [
        ("agent_error", "agent", True),
        ("timeout", "agent", True),
        ("validation_error", "verifier", True),
        ("infrastructure_error", "agent", False),
        ("infrastructure_error", "verifier", False),
        ("validation_error", "environment_setup", False),
        ("timeout", "agent_setup", False),
        ("validation_error", None, False),
    ],
)
def test_whether_a_trial_could_run(category: str, phase: str | None, could_run: bool) -> None:
    report = trial_report(TRIAL, failed(category, phase), 1.0)
    assert report.could_run is could_run
    assert (report.verdict, report.message, report.reward) == (category, "it broke", None)
    assert exit_code([report], None) == (0 if could_run else 1)
    assert exit_code([report], 0.0) == (0 if could_run else 1)


@pytest.mark.parametrize(
    ("rewards", "threshold", "mean", "code"),
    [
        ([1.0, 0.0], None, 0.5, 0),
        ([1.0, 0.0], 0.5, 0.5, 0),
        ([1.0, 0.0], 0.51, 0.5, 1),
        ([1.0, None], 0.6, 0.5, 1),
        ([0.0], 0.0, 0.0, 0),
        ([-1.0], 0.0, -1.0, 1),
    ],
)
def test_the_threshold(
    rewards: list[float | None], threshold: float | None, mean: float, code: int
) -> None:
    reports = [trial_report(TRIAL, graded(reward), 1.0) for reward in rewards]
    assert mean_reward(reports) == mean
    assert exit_code(reports, threshold) == code


def test_no_trial_has_no_mean() -> None:
    assert mean_reward([]) is None


def test_several_rewards_and_the_trials_own_time() -> None:
    report = trial_report(TRIAL, graded(1.0, rewards={"reward": 1.0, "speed": 3}), 9.0)
    assert report.rewards == {"reward": 1.0, "speed": 3}
    assert report.seconds == 9.0
    assert trial_report(TRIAL, failed("timeout", "agent"), 9.0).seconds == 2.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0s"),
        (9.94, "9.9s"),
        (10, "10s"),
        (59.6, "1m 00s"),
        (185, "3m 05s"),
        (7800, "2h 10m"),
        (400_000, "4d"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 B"), (2048, "2 KiB"), (5 * 2**20, "5 MiB"), (2**40, "1024.0 GiB")]
)
def test_sizes(number: int, text: str) -> None:
    assert size(number) == text


def test_a_message_is_cut_to_its_first_line() -> None:
    assert first_line("\n  one\ntwo") == "one"
    assert first_line("") == ""
    assert len(first_line("x" * 1000)) == 300
