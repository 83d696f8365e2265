"""From what Harbor reports of a trial to an outcome. Decisions only.

The one file that is read, in ``native.sample``, is a native agent's trajectory.
"""

from collections.abc import Iterable
from typing import Any

from harbor.models.trial.result import ExceptionInfo, TrialResult

from harbor_backend.core.policy import is_the_agents
from harbor_backend.core.trial import Trial
from harbor_backend.native.sample import native_sample
from harbor_backend.program.native_agents import ENDPOINTLESS
from harbor_backend.trial.categories import agents_error, category_of, phase_of, verifiers_errors
from harbor_backend.trial.sample_reward import NO_REWARD, rewarded
from osmosis_ai.rollout.execution import NO_GRADER, refusal, wants_grading, with_label
from osmosis_ai.rollout.types.execution import ExecutionOutcome, ExecutionResult
from osmosis_ai.rollout.types.sample import RolloutSample
from osmosis_ai.rollout.types.status import RolloutErrorCategory, RolloutStatus


def outcome_of(trial: Trial, result: TrialResult) -> ExecutionOutcome:
    """Map a finished trial, once, to the outcome that every backend would have."""
    steps = result.step_results or []
    verified = any(timing is not None for timing in (result.verifier, *(s.verifier for s in steps)))
    workflow = ended_workflow(trial, result, verified=verified)
    return ExecutionOutcome(workflow=workflow, grader=_grader(trial, result, workflow))


def ended_workflow(trial: Trial, result: TrialResult, *, verified: bool) -> ExecutionResult:
    """How the workflow's phase ended.

    An agent that failed by itself, and whose work the task's tests graded
    (``verified``), is a success that says in its ``err_`` fields how it failed.
    """
    workflow = trial.rollout.workflow or native_workflow(trial, result)
    if verified and trial.spec.is_graded_by_task and is_the_agents(workflow):
        return workflow.model_copy(update={"status": RolloutStatus.SUCCESS})
    return workflow


def native_workflow(trial: Trial, result: TrialResult) -> ExecutionResult:
    """The workflow's result where Harbor itself ran the agent, or none ran at all."""
    error = agents_error(result)
    metrics = _token_totals(result)
    sample: RolloutSample | None = None
    native, request = trial.spec.program.native_agent, trial.spec.request
    if native is not None and native not in ENDPOINTLESS:
        sample = native_sample(trial, metrics)
    elif error is None:
        messages = request.prompt or [{"role": "user", "content": result.task_name}]
        sample = RolloutSample(messages=messages, label=request.label, metrics=metrics)
    if error is not None:
        return _failed(trial, result, error, sample)
    return ExecutionResult(status=RolloutStatus.SUCCESS, sample=sample)


def _grader(trial: Trial, result: TrialResult, workflow: ExecutionResult) -> ExecutionResult | None:
    if not wants_grading(trial.spec.request, workflow):
        return None
    if trial.results.grader is not None:
        return trial.results.grader
    graded = _graded(trial, result, workflow)
    return _beside(workflow, with_label(graded, trial.spec.request.label))


def _graded(trial: Trial, result: TrialResult, workflow: ExecutionResult) -> ExecutionResult:
    """What the task's own tests gave."""
    sample = workflow.sample or RolloutSample()
    of_steps = [step.exception_info for step in result.step_results or []]
    if result.verifier_result is not None and result.verifier_result.rewards is not None:
        # Harbor's reward is the mean over the steps it verified; one that was lost is in none.
        return _first_loss(trial, result, of_steps, sample) or rewarded(
            sample, result.verifier_result.rewards
        )
    agent_failed = workflow.err_category is not None
    errors = verifiers_errors(result) if agent_failed else [result.exception_info, *of_steps]
    if agent_failed and trial.results.verifier_error is not None:
        # Harbor's result has the agent's exception alone, so that the phase is said here.
        return _failed(trial, result, trial.results.verifier_error, sample, phase="verifier")
    for error in errors:
        if error is not None:
            return _failed(trial, result, error, sample)
    nobody = result.verifier is None and not agent_failed
    return refusal(NO_GRADER if nobody else NO_REWARD, sample=sample)


def _beside(workflow: ExecutionResult, graded: ExecutionResult) -> ExecutionResult:
    """Say beside a grade that the agent failed; that comes first where there is no reward.

    What the infrastructure lost stays lost: the agent's failure is no reason for that.
    """
    if workflow.err_category is None:
        return graded
    message, category = workflow.err_message, workflow.err_category
    if graded.err_category is RolloutErrorCategory.INFRASTRUCTURE_ERROR:
        message = f"{graded.err_message} (the agent had failed before: {message})"
        category = graded.err_category
    elif graded.status is not RolloutStatus.SUCCESS:
        message = f"{message}. What it left has no reward: {graded.err_message}"
    return graded.model_copy(update={"err_message": message, "err_category": category})


def _first_loss(
    trial: Trial,
    result: TrialResult,
    errors: Iterable[ExceptionInfo | None],
    sample: RolloutSample,
) -> ExecutionResult | None:
    """The first failure that was the infrastructure's, if there is one."""
    failures = (_failed(trial, result, error, sample) for error in errors if error is not None)
    lost = RolloutErrorCategory.INFRASTRUCTURE_ERROR
    return next((failure for failure in failures if failure.err_category is lost), None)


def _failed(
    trial: Trial,
    result: TrialResult,
    error: ExceptionInfo,
    sample: RolloutSample | None,
    phase: str | None = None,
) -> ExecutionResult:
    """A failed result that carries an exception, of the phase that Harbor's result says or this."""
    is_workflow = trial.spec.program.native_agent is None
    return ExecutionResult(
        status=RolloutStatus.FAILURE,
        sample=sample,
        err_message=error.exception_message or error.exception_type,
        err_category=category_of(
            error.exception_type,
            phase or phase_of(result, error),
            is_workflow=is_workflow,
            message=error.exception_message,
        ),
    )


def _token_totals(result: TrialResult) -> dict[str, Any]:
    agent = result.agent_result
    if agent is None:
        return {}
    totals = {
        "input_tokens": agent.n_input_tokens,
        "cached_tokens": agent.n_cache_tokens,
        "output_tokens": agent.n_output_tokens,
        "cost_usd": agent.cost_usd,
    }
    return {name: value for name, value in totals.items() if value is not None}
