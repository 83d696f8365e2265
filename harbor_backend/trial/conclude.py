"""From a trial that Harbor ran to the rollout's outcome and files."""

import asyncio
import shutil
from pathlib import Path

from harbor.environments.base import SandboxBuildFailedError
from harbor.models.trial.result import TrialResult

from harbor_backend.core.trial import Trial
from harbor_backend.errors import HarborBackendError
from harbor_backend.trial.archive import archive_trial
from harbor_backend.trial.diagnostics import diagnostics
from harbor_backend.trial.images import build_category
from harbor_backend.trial.outcome import outcome_of
from osmosis_ai.rollout.backend.calls import mark_untrainable, report_calls
from osmosis_ai.rollout.execution import failure
from osmosis_ai.rollout.types.execution import ExecutionOutcome
from osmosis_ai.rollout.types.status import RolloutErrorCategory, RolloutStatus

NOT_STARTED = (
    HarborBackendError,
    SandboxBuildFailedError,
    ValueError,
    OSError,
    RuntimeError,
    SystemExit,
)
"""What says that a trial cannot begin; Harbor refuses some configurations when it makes one."""


async def conclude(
    trial: Trial,
    result: TrialResult,
    environment: str,
    artifact_root: Path,
    *,
    cleanup: bool,
    move: bool = False,
) -> ExecutionOutcome:
    """Archive a finished trial's files and map it, once, to its outcome.

    ``cleanup`` removes Harbor's directory of a trial in which nothing failed; with ``move``
    it goes in either case, and its artifacts need not be copied.
    """
    spec = trial.spec
    for problem in await asyncio.to_thread(
        archive_trial,
        spec.trial_dir,
        artifact_root,
        spec.request.id,
        has_run=result.agent_setup is not None,
        move=move,
    ):
        trial.results.note(problem)
    outcome = await asyncio.to_thread(outcome_of, trial, result)
    report = diagnostics(trial, result, environment)
    policy = None if spec.policy is None else spec.policy.endpoint
    for phase in (outcome.workflow, outcome.grader):
        if phase is not None:
            mark_untrainable(phase, policy)
            report_calls(phase, policy, "model_calls")
            phase.extra_fields.update(report)
    if outcome.grader is not None and spec.judge is not None:
        report_calls(outcome.grader, spec.judge.endpoint, "judge_calls")
    sampled, ended = outcome.workflow.sample is not None, outcome.result
    succeeded = ended.status is RolloutStatus.SUCCESS and ended.err_category is None
    if cleanup and sampled and succeeded:
        await asyncio.to_thread(shutil.rmtree, spec.trial_dir, ignore_errors=True)
    return outcome


def not_started(exc: BaseException) -> ExecutionOutcome:
    """The outcome of a rollout whose trial could not begin, or was refused by Harbor."""
    if isinstance(exc, HarborBackendError):
        category, phase = exc.category, exc.phase or "setup"
    else:
        mistaken = isinstance(exc, ValueError | FileNotFoundError | SandboxBuildFailedError)
        phase = "setup"
        category = (
            RolloutErrorCategory.VALIDATION_ERROR
            if mistaken
            else RolloutErrorCategory.INFRASTRUCTURE_ERROR
        )
        if isinstance(exc, SandboxBuildFailedError):
            category = build_category(str(exc)) or category
    result = failure(exc, category=category)
    result.extra_fields.update({"backend": "harbor", "phase": phase})
    return ExecutionOutcome(workflow=result)
