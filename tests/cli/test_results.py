"""What a run's outcomes mean, by table."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osmosis_ai.cli.output import cause, duration, first_line, size
from osmosis_ai.cli.trials.choices import EnvironmentName, Keep
from osmosis_ai.cli.trials.plan import Plan, Trial
from osmosis_ai.cli.trials.results import (
    Ending,
    as_json,
    exit_code,
    mean_reward,
    mean_rewards,
    trial_report,
)
from osmosis_ai.cli.trials.table import print_report
from osmosis_ai.rollout.types.execution import ExecutionOutcome, ExecutionResult
from osmosis_ai.rollout.types.sample import RolloutSample
from osmosis_ai.rollout.types.status import RolloutErrorCategory, RolloutStatus

TRIAL = Trial("task", 1, "task-1-abc")


def graded(
    reward: float | None,
    status: RolloutStatus = RolloutStatus.SUCCESS,
    *,
    removed: bool = False,
    **extra: Any,
) -> ExecutionOutcome:
    workflow = ExecutionResult(status=RolloutStatus.SUCCESS, extra_fields={"phase": "verifier"})
    sample = RolloutSample(reward=reward, extra_fields=extra, remove_sample=removed)
    grader = ExecutionResult(status=status, sample=sample, extra_fields={"phase": "verifier"})
    return ExecutionOutcome(workflow=workflow, grader=grader)


def noted(reward: float) -> ExecutionOutcome:
    """Graded although the agent was too late."""
    outcome, late = graded(reward), RolloutErrorCategory.TIMEOUT
    for result in (outcome.workflow, outcome.grader):
        assert result is not None
        result.err_message, result.err_category = "too late", late
    return outcome


def make_plan(attempts: int) -> Plan:
    """A plan of one task; a trial passes with 0.5."""
    return Plan(
        tasks_dir=Path(),
        tasks=("task",),
        fetched={},
        problems={},
        agent="nop",
        grader=None,
        model=None,
        environment=EnvironmentName.DOCKER,
        remote=None,
        n_concurrent=1,
        attempts=attempts,
        threshold=0.5,
        keep=Keep.NONE,
        force_build=False,
        output=Path(),
        write_report=False,
    )


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
    assert report.may_run_again is (category == "infrastructure_error")
    assert exit_code([report], None) == (0 if could_run else 1)
    assert exit_code([report], 0.0) == 1  # a threshold is reached by a score


@pytest.mark.parametrize(
    ("rewards", "threshold", "mean", "code"),
    [
        ([1.0, 0.0], None, 0.5, 0),
        ([1.0, 0.0], 0.5, 0.5, 0),
        ([1.0, 0.0], 0.51, 0.5, 1),
        ([1.0, None], None, 1.0, 0),
        ([1.0, None], 0.6, 1.0, 1),
        ([None], None, None, 0),
        ([0.0], 0.0, 0.0, 0),
        ([-1.0], 0.0, -1.0, 1),
    ],
)
def test_the_threshold(
    rewards: list[float | None], threshold: float | None, mean: float | None, code: int
) -> None:
    reports = [trial_report(TRIAL, graded(reward), 1.0) for reward in rewards]
    assert mean_reward(reports) == mean
    assert exit_code(reports, threshold) == code


def test_no_trial_has_no_mean() -> None:
    assert mean_reward([]) is None


ENDINGS: dict[str, tuple[ExecutionOutcome, Ending, float | None]] = {
    "scored": (graded(0.5), Ending.SCORED, 0.5),
    "a reward of 0 is a score": (graded(0.0), Ending.SCORED, 0.0),
    "scored although the agent failed": (noted(0.5), Ending.AGENT_FAILED, 0.5),
    "no reward": (graded(None), Ending.NO_RESULT, None),
    "to be left out": (graded(0.5, removed=True), Ending.NO_RESULT, None),
    "the agent's failure": (failed("timeout", "agent"), Ending.NO_RESULT, None),
    "a failed grader's reward": (graded(0.5, RolloutStatus.FAILURE), Ending.NO_RESULT, None),
}


@pytest.mark.parametrize("case", ENDINGS)
def test_how_a_trial_ended(case: str) -> None:
    outcome, ending, reward = ENDINGS[case]
    report = trial_report(TRIAL, outcome, 1.0)
    assert (report.ending, report.reward, report.is_scored) == (ending, reward, reward is not None)
    if ending is Ending.AGENT_FAILED:
        assert (report.category, report.message, report.could_run) == ("timeout", "too late", True)


@given(st.lists(st.sampled_from(sorted(ENDINGS)), max_size=12), st.integers(0, 3))
def test_the_counts_add_up_to_what_was_asked_for(cases: list[str], missing: int) -> None:
    reports = [trial_report(TRIAL, ENDINGS[case][0], 1.0) for case in cases]
    plan = make_plan(len(cases) + missing)
    document = as_json(plan, reports, 1.0)
    assert sum(document["endings"].values()) == document["n_asked_for"] == len(cases) + missing
    assert document["endings"]["not_run"] == missing
    scored = [r.reward for r in reports if r.reward is not None]
    assert document["n_scored"] == len(scored)
    assert (document["mean_reward"] is None) is (document["pass_rate"] is None) is (not scored)
    if scored:
        assert document["mean_reward"] == pytest.approx(sum(scored) / len(scored))
        assert document["pass_rate"] == sum(reward >= 0.5 for reward in scored) / len(scored)


def test_named_rewards_have_means_of_their_own() -> None:
    rewards: list[dict[str, Any]] = [{"a": 1, "b": 2.0}, {"a": 0}, {"a": math.nan}]
    reports = [trial_report(TRIAL, graded(1.0, rewards=each), 1.0) for each in rewards]
    assert mean_rewards(reports) == {"a": 0.5, "b": 2.0}


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


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("\none\ntwo", "one"),
        ("It does not build:\nstep 1\n\nrefused\n", "It does not build: refused"),
        ("It says:", "It says:"),
        ("", ""),
    ],
)
def test_a_message_that_only_announces_is_shown_with_its_end(text: str, line: str) -> None:
    assert cause(text) == line


def test_the_line_below_the_table_says_how_many_were_scored(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cases = ["scored", "scored although the agent failed", "no reward", "the agent's failure"]
    reports = [trial_report(TRIAL, ENDINGS[case][0], 1.0) for case in cases]
    print_report(make_plan(5), [*reports[:3], replace(reports[3], runs=3)], 1.0)
    assert (
        "mean reward 0.500 over 2 scored of 5 trials in 1.0s; threshold 0.5 missed; "
        "1 scored although the agent failed; 2 without a result; 2 run again; 1 not run\n"
    ) in capsys.readouterr().out
