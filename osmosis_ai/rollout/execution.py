"""The execution core: run one workflow, grade one sample.

The only code that builds contexts, calls ``run()`` and ``grade()``, normalises
what they yield, holds deadlines, validates rewards and turns exceptions into
results. A backend in this process and the runner inside a sandbox call the
very same functions, so a result does not depend on where it was made.
"""

import copy
import logging
from pathlib import Path

from osmosis_ai.common.texts import bounded_notes
from osmosis_ai.rollout.closing import closing_after_run
from osmosis_ai.rollout.context import (
    AgentWorkflowContext,
    GraderContext,
    ModelEndpoint,
    RolloutContext,
    get_rollout_context,
)
from osmosis_ai.rollout.deadline import run_within
from osmosis_ai.rollout.direct_calls import direct_call_warning, watching_direct_calls
from osmosis_ai.rollout.errors import categorize_exception, describe_exception
from osmosis_ai.rollout.grader import Grader
from osmosis_ai.rollout.portable import portable_sample
from osmosis_ai.rollout.types.config import AgentWorkflowConfig, BaseConfig, GraderConfig
from osmosis_ai.rollout.types.execution import ExecutionRequest, ExecutionResult
from osmosis_ai.rollout.types.output import coerce_output
from osmosis_ai.rollout.types.sample import RolloutSample
from osmosis_ai.rollout.types.status import RolloutErrorCategory, RolloutStatus
from osmosis_ai.rollout.workflow import AgentWorkflow

logger = logging.getLogger(__name__)

WORKFLOW_PHASE = "Workflow"
WARNINGS = "warnings"
GRADER_PHASE = "Grader"

NO_SAMPLE = (
    "Workflow produced no sample: return AgentWorkflowOutput(messages=...) or a list of "
    "messages from run(), or call the policy through an integration that registers its history"
)
NO_GRADER = (
    "The rollout asked for grading, but no grader is configured: pass grader= to the backend, "
    "or send grade=False"
)
NO_LABEL = (
    "The rollout has neither a label nor metadata to grade against: send one of them, or "
    "send grade=False"
)


async def run_workflow(
    workflow: type[AgentWorkflow[AgentWorkflowConfig]],
    config: AgentWorkflowConfig | None,
    request: ExecutionRequest,
    *,
    queued_sec: float = 0.0,
    artifacts_dir: Path | None = None,
) -> ExecutionResult:
    """Run one workflow and collect its sample, all within the agent's deadline.

    ``queued_sec`` (seconds) was spent waiting for a slot and counts against the
    deadline. The active rollout context is used, or a new one made. Failures
    of user code become results; only cancellation from outside is raised.
    """
    context = get_rollout_context() or RolloutContext(rollout_id=request.id)
    notes: list[str] = []

    async def produce() -> RolloutSample | None:
        run_config = _copy_config(config, "workflow_config")
        async with closing_after_run():
            returned = await workflow(run_config).run(
                AgentWorkflowContext(
                    prompt=copy.deepcopy(request.prompt),
                    config=run_config,
                    metadata=copy.deepcopy(request.metadata),
                    artifacts_dir=artifacts_dir,
                )
            )
            output = coerce_output(returned)
            if output is None:
                sample = await context.get_sample()
            elif output.messages is None:
                sample = None
            else:
                sample = RolloutSample(messages=output.messages, metrics=dict(output.metrics))
        return (
            None if sample is None else portable_sample(sample, phase=WORKFLOW_PHASE, notes=notes)
        )

    with context, watching_direct_calls(context) as watch:
        try:
            sample = await run_within(
                produce,
                phase=WORKFLOW_PHASE,
                timeout_sec=request.agent_timeout_sec,
                queued_sec=queued_sec,
            )
        except Exception as exc:
            logger.info("Rollout %s: workflow failed", request.id, exc_info=exc)
            result = failure(exc)
        else:
            result = (
                refusal(NO_SAMPLE)
                if sample is None
                else ExecutionResult(status=RolloutStatus.SUCCESS, sample=sample)
            )
    if warning := direct_call_warning(context, watch):
        logger.warning("Rollout %s: %s", request.id, warning)
        notes.append(warning)
    if notes:
        result.extra_fields[WARNINGS] = bounded_notes(notes)
    return with_label(result, request.label)


def grading_refusal(
    request: ExecutionRequest, workflow: ExecutionResult, *, has_grader: bool
) -> ExecutionResult | None:
    """Return why a wanted grading cannot happen, or ``None`` when it can."""
    if not has_grader:
        return refusal(NO_GRADER, sample=workflow.sample)
    if request.label is None and request.metadata is None:
        return refusal(NO_LABEL, sample=workflow.sample)
    return None


def wants_grading(request: ExecutionRequest, workflow: ExecutionResult) -> bool:
    """Whether the grader's phase follows the workflow's."""
    return request.grade and workflow.status is RolloutStatus.SUCCESS


async def run_grader(
    grader: type[Grader],
    config: GraderConfig | None,
    request: ExecutionRequest,
    workflow: ExecutionResult,
    *,
    artifacts_dir: Path | None = None,
    project_path: str | None = None,
    judge: ModelEndpoint | None = None,
) -> ExecutionResult:
    """Grade a copy of the workflow's sample within the grader's own deadline.

    The rollout context during grading is one of its own: it routes to the
    ``judge``, or nowhere, and a sample source registered in it is not asked.

    The workflow's result stays as it was. Failures of user code become results
    that keep the sample as the grader left it.
    """
    context = GraderContext(
        label=request.label,
        sample=None if workflow.sample is None else workflow.sample.model_copy(deep=True),
        project_path=project_path,
        metadata=copy.deepcopy(request.metadata),
        artifacts_dir=artifacts_dir,
        judge=judge,
    )

    async def grade() -> None:
        async with closing_after_run():
            await grader(_copy_config(config, "grader_config")).grade(context)

    try:
        with _judge_context(request, judge):
            await run_within(grade, phase=GRADER_PHASE, timeout_sec=request.grader_timeout_sec)
        if context.sample is None:
            return refusal(
                "No sample to grade: the rollout collected none, or the grader removed it from "
                "its context (set ctx.sample.remove_sample to drop a sample)"
            )
        notes: list[str] = []
        sample = portable_sample(context.sample, phase=GRADER_PHASE, notes=notes)
    except Exception as exc:
        logger.info("Rollout %s: grader failed", request.id, exc_info=exc)
        return failure(exc, sample=_salvage(context.sample))
    if sample.reward is None and not sample.remove_sample:
        return refusal(
            "The sample has no reward after grading: call ctx.set_reward() in grade() (its "
            "return value is ignored), or set ctx.sample.remove_sample",
            sample=sample,
        )
    result = ExecutionResult(status=RolloutStatus.SUCCESS, sample=sample)
    if notes:
        result.extra_fields[WARNINGS] = bounded_notes(notes)
    return result


def _judge_context(request: ExecutionRequest, judge: ModelEndpoint | None) -> RolloutContext:
    context = RolloutContext(rollout_id=request.id)
    # Set, not passed: empty arguments would fall back to the environment's policy.
    context.chat_completions_url = "" if judge is None else judge.url
    context.api_key = None if judge is None else judge.api_key
    return context


def failure(
    exc: BaseException,
    *,
    sample: RolloutSample | None = None,
    category: RolloutErrorCategory | None = None,
) -> ExecutionResult:
    """Turn an exception into a failed result."""
    return ExecutionResult(
        status=RolloutStatus.FAILURE,
        sample=sample,
        err_message=describe_exception(exc),
        err_category=category or categorize_exception(exc),
    )


def refusal(message: str, *, sample: RolloutSample | None = None) -> ExecutionResult:
    """A failed result for a request that cannot be served as it stands."""
    return ExecutionResult(
        status=RolloutStatus.FAILURE,
        sample=sample,
        err_message=message,
        err_category=RolloutErrorCategory.VALIDATION_ERROR,
    )


def with_label(result: ExecutionResult, label: str | None) -> ExecutionResult:
    """Give the sample the request's label when it carries none of its own.

    Done on the host: the label never enters the agent's sandbox.
    """
    if result.sample is not None and result.sample.label is None and label is not None:
        result.sample.label = label
    return result


def _copy_config[C: BaseConfig](config: C | None, name: str) -> C | None:
    try:
        return copy.deepcopy(config)
    except Exception as exc:
        raise ValueError(
            f"{name} ({type(config).__name__}) cannot be copied for a run: {exc}; keep locks, "
            "sockets and clients out of it and make them inside the run"
        ) from exc


def _salvage(sample: object) -> RolloutSample | None:
    """Keep what a failed grader left of the sample, if it is still a valid one."""
    try:
        return portable_sample(sample, phase=GRADER_PHASE)
    except Exception as exc:
        logger.info("The failed grader left no usable sample: %s", type(exc).__name__)
        return None
