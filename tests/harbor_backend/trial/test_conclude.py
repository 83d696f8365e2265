"""A finished trial's outcome and files, and the outcome of one that never began."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from harbor.environments.base import SandboxBuildFailedError
from harbor.models.verifier.result import VerifierResult

from harbor_backend.core.spec import Model
from harbor_backend.errors import (
    HarborBackendError,
    ModelRouteError,
    ModelUnreachableError,
    SandboxLostError,
    SandboxStartError,
    WorkflowFailedError,
)
from harbor_backend.places.docker.client import DockerCommandError
from harbor_backend.places.docker.engine import EngineError
from harbor_backend.places.harbor.environment import ComposeFileError
from harbor_backend.places.skypilot.errors import (
    SandboxCreationError,
    SkypilotError,
    SkypilotUnavailableError,
)
from harbor_backend.places.ssh.errors import HostLostError, HostRefusedError, NoHostError
from harbor_backend.program.bundle.uv import UvError
from harbor_backend.program.runtime.elf import MissingLibraryError
from harbor_backend.trial.conclude import NOT_STARTED, conclude, not_started
from harbor_backend.trial.fetching import TaskFetchError
from harbor_backend.trial.tasks import TaskError
from osmosis_ai.gateway import Gateway
from osmosis_ai.rollout import ExecutionOutcome, ExecutionResult, RolloutSample, RolloutStatus
from osmosis_ai.rollout.types.status import RolloutErrorCategory
from tests.harbor_backend.reports import error, reached, trial_result
from tests.harbor_backend.specs import living, make_spec, workflow_program
from tests.harbor_backend.trial.test_categories import OURS

INFRASTRUCTURE = RolloutErrorCategory.INFRASTRUCTURE_ERROR
VALIDATION = RolloutErrorCategory.VALIDATION_ERROR
AGENT = RolloutErrorCategory.AGENT_ERROR

REFUSALS: Mapping[BaseException, tuple[RolloutErrorCategory, str]] = {
    TaskError("no task.toml"): (VALIDATION, "setup"),
    TaskFetchError("no answer"): (INFRASTRUCTURE, "setup"),
    ComposeFileError("no services"): (VALIDATION, "setup"),
    SandboxStartError("too late"): (INFRASTRUCTURE, "environment_setup"),
    SandboxLostError("gone"): (INFRASTRUCTURE, "setup"),
    EngineError("no answer"): (INFRASTRUCTURE, "setup"),
    DockerCommandError("no docker"): (INFRASTRUCTURE, "setup"),
    ModelRouteError("no socket"): (INFRASTRUCTURE, "setup"),
    ModelUnreachableError("no route"): (INFRASTRUCTURE, "setup"),
    NoHostError("none answers"): (INFRASTRUCTURE, "setup"),
    HostLostError("gone"): (INFRASTRUCTURE, "setup"),
    HostRefusedError("no rights"): (INFRASTRUCTURE, "setup"),
    SkypilotError("quota"): (INFRASTRUCTURE, "setup"),
    SkypilotUnavailableError("not installed"): (INFRASTRUCTURE, "setup"),
    SandboxCreationError("refused"): (INFRASTRUCTURE, "setup"),
    WorkflowFailedError("its own"): (AGENT, "agent"),
    HarborBackendError("one of ours"): (INFRASTRUCTURE, "setup"),
    SandboxBuildFailedError("no Dockerfile"): (VALIDATION, "setup"),
    ValueError("an argument"): (VALIDATION, "setup"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"): (VALIDATION, "setup"),
    FileNotFoundError(2, "No such file", "task.toml"): (VALIDATION, "setup"),
    UvError("does not resolve", "its last lines"): (INFRASTRUCTURE, "setup"),
    MissingLibraryError("libssl"): (INFRASTRUCTURE, "setup"),
    RuntimeError("Harbor's own"): (INFRASTRUCTURE, "setup"),
    PermissionError(13, "Permission denied"): (INFRASTRUCTURE, "setup"),
    OSError(28, "No space left on device"): (INFRASTRUCTURE, "setup"),
    ConnectionRefusedError(111, "Connection refused"): (INFRASTRUCTURE, "setup"),
    TimeoutError("late"): (INFRASTRUCTURE, "setup"),
    SystemExit("a preflight of Harbor's"): (INFRASTRUCTURE, "setup"),
}
"""Everything that can keep a trial from its beginning, whose fault it is, and in which phase."""


@pytest.mark.parametrize("exc", REFUSALS, ids=lambda exc: type(exc).__name__)
def test_a_trial_that_did_not_begin(exc: BaseException) -> None:
    assert isinstance(exc, NOT_STARTED)
    category, phase = REFUSALS[exc]
    assert not_started(exc) == ExecutionOutcome(
        workflow=ExecutionResult(
            status=RolloutStatus.FAILURE,
            err_message=str(exc),
            err_category=category,
            extra_fields={"backend": "harbor", "phase": phase},
        )
    )


def test_every_exception_of_ours_is_in_the_table() -> None:
    assert {type(exc).__name__ for exc in REFUSALS} >= set(OURS)


@pytest.mark.parametrize(
    "exc", [TypeError("a mistake"), KeyError("of ours"), KeyboardInterrupt()], ids=repr
)
def test_a_bug_is_no_outcome(exc: BaseException) -> None:
    assert not isinstance(exc, NOT_STARTED)


def test_an_exception_without_a_text_is_named() -> None:
    assert not_started(RuntimeError()).workflow.err_message == "RuntimeError"


REWARDED: dict[str, Any] = {
    **reached("verifier"),
    "verifier_result": VerifierResult(rewards={"reward": 1.0}),
}


def worked(with_sample: bool = True) -> ExecutionResult:
    made = RolloutSample(messages=[{"role": "assistant", "content": "4"}]) if with_sample else None
    return ExecutionResult(status=RolloutStatus.SUCCESS, sample=made)


BROKE = ExecutionResult(status=RolloutStatus.FAILURE, err_message="x", err_category=AGENT)

STAYS: dict[str, tuple[bool, ExecutionResult, dict[str, Any], bool]] = {
    # cleanup, the workflow's result, Harbor's, whether the trial's directory stays
    "a success is cleaned up": (True, worked(), REWARDED, False),
    "unless nobody wants that": (False, worked(), REWARDED, True),
    "a failed workflow stays": (True, BROKE, reached("agent"), True),
    "a failed workflow stays, though its work was graded": (
        True,
        BROKE.model_copy(update={"sample": worked().sample}),
        REWARDED,
        True,
    ),
    "a failed grader stays": (
        True,
        worked(),
        {**reached("verifier"), "exception_info": error("VerifierTimeoutError")},
        True,
    ),
    "a success without a sample stays": (True, worked(with_sample=False), REWARDED, True),
}


@pytest.mark.parametrize("case", STAYS)
async def test_what_stays_of_harbors_directory(case: str, tmp_path: Path) -> None:
    cleanup, workflow, harbor, stays = STAYS[case]
    async with living(make_spec(tmp_path, program=workflow_program())) as trial:
        trial.spec.trial_dir.mkdir()
        (trial.spec.trial_dir / "trial.log").write_text("it ran")
        trial.rollout.workflow = workflow
        result = trial_result(tmp_path, **harbor)
        root = tmp_path / "rollouts"
        await conclude(trial, result, "docker", root, cleanup=cleanup)
        assert trial.spec.trial_dir.exists() is stays
        assert (root / "r" / "logs" / "trial.log").read_text() == "it ran"


async def test_both_results_carry_the_report_and_each_its_own_calls(tmp_path: Path) -> None:
    async with (
        Gateway() as gateway,
        gateway.open("r", "embedded/shell") as policy,
        gateway.open("r", "embedded/shell", kind="judge") as judge,
        living(
            make_spec(
                tmp_path,
                program=workflow_program(grader=True),
                endpoint=policy,
                judge=Model(judge),
            )
        ) as trial,
    ):
        trial.rollout.workflow = worked()
        trial.results.note("a note")
        outcome = await conclude(
            trial, trial_result(tmp_path, **REWARDED), "docker", tmp_path, cleanup=False
        )
    assert outcome.grader is not None
    none = {"calls": 0, "errors": 0}
    workflow, grader = outcome.workflow.extra_fields, outcome.grader.extra_fields
    assert {name: workflow.get(name) for name in ("environment", "phase", "notes")} == {
        "environment": "docker",
        "phase": "verifier",
        "notes": ["a note"],
    }
    assert workflow["model_calls"] == none
    assert grader == {**workflow, "judge_calls": none}


async def test_a_workflow_that_failed_has_no_judge_to_report(tmp_path: Path) -> None:
    async with (
        Gateway() as gateway,
        gateway.open("r", "embedded/shell", kind="judge") as judge,
        living(make_spec(tmp_path, program=workflow_program(), judge=Model(judge))) as trial,
    ):
        trial.rollout.workflow = BROKE.model_copy(deep=True)
        outcome = await conclude(trial, trial_result(tmp_path), "docker", tmp_path, cleanup=True)
    assert outcome.grader is None
    assert not {"model_calls", "judge_calls"} & set(outcome.workflow.extra_fields)


async def test_a_file_that_cannot_be_archived_is_a_note(tmp_path: Path) -> None:
    async with living(make_spec(tmp_path, program=workflow_program())) as trial:
        trial.spec.trial_dir.mkdir()
        (trial.spec.trial_dir / "trial.log").write_text("it ran")
        trial.rollout.workflow = worked()
        root = tmp_path / "rollouts"
        root.write_text("a file where a directory should be")
        result = trial_result(tmp_path, **REWARDED)
        outcome = await conclude(trial, result, "docker", root, cleanup=False)
    assert outcome.result.status is RolloutStatus.SUCCESS
    (note,) = outcome.workflow.extra_fields["notes"]
    assert note.startswith("trial.log was not archived: ")
