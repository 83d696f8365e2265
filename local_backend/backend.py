"""LocalBackend: runs workflow and grader in the current process."""

import asyncio
import math
import time
from typing import Any

import anyio

from osmosis_ai.common.observer import (
    AGENT,
    ENVIRONMENT,
    GRADING,
    GRADING_QUEUE,
    observer,
    phase,
)
from osmosis_ai.rollout.artifacts import artifact_root, provision_artifacts_dir
from osmosis_ai.rollout.backend.believed import believed, upstream_failed
from osmosis_ai.rollout.backend.calls import mark_untrainable, report_calls
from osmosis_ai.rollout.backend.gateway import BackendGateway, as_model
from osmosis_ai.rollout.backend.lifecycle import LifecycleBackend
from osmosis_ai.rollout.backend.live import LiveRollout
from osmosis_ai.rollout.context import RolloutContext, get_rollout_context
from osmosis_ai.rollout.execution import (
    grading_refusal,
    run_grader,
    run_workflow,
    wants_grading,
)
from osmosis_ai.rollout.grader import Grader
from osmosis_ai.rollout.resolve import resolve_config, resolve_grader, resolve_workflow
from osmosis_ai.rollout.types.config import AgentWorkflowConfig, GraderConfig
from osmosis_ai.rollout.types.execution import ExecutionOutcome, ExecutionRequest, ExecutionResult
from osmosis_ai.rollout.types.status import RolloutStatus
from osmosis_ai.rollout.workflow import AgentWorkflow

DEFAULT_MAX_CONCURRENT = 4


class LocalBackend(LifecycleBackend):
    """Workflow and grader as coroutines in this process, for trusted code.

    Nothing is isolated: rollouts share the process, its files and its
    environment, and code that blocks the event loop stalls every rollout.

    ``workflow`` and ``grader`` are classes or ``"module:attr"``; the configs are
    instances or ``"module:attr"``. Each run gets its own copy of both configs.
    Workflows at once: ``workflow_config.concurrency``, or 4 without a config.
    Gradings at once: ``grader_config.concurrency``, independent of the former.
    ``judge``, ``judge_api_key``: the model that graders may ask through
    ``ctx.judge``; see ``BackendGateway``.
    ``max_queue_depth`` bounds how many rollouts may wait for a workflow slot
    before ``has_capacity()`` says no (``None``: any number).
    ``workflow_rewards``: a reward that the workflow itself sets counts, where no
    grader sets another; else it is cleared.

    Raises:
        ValueError, TypeError, ImportError: an argument does not resolve to
            what it should be; the text names it.
    """

    def __init__(
        self,
        *,
        workflow: type[AgentWorkflow[Any]] | str,
        workflow_config: AgentWorkflowConfig | str | None = None,
        grader: type[Grader] | str | None = None,
        grader_config: GraderConfig | str | None = None,
        judge: str | None = None,
        judge_api_key: str | None = None,
        max_queue_depth: int | None = None,
        workflow_rewards: bool = False,
    ) -> None:
        self.workflow = resolve_workflow(workflow)
        self.workflow_config = resolve_config(
            workflow_config, AgentWorkflowConfig, "workflow_config"
        )
        self.grader = resolve_grader(grader)
        self.grader_config = resolve_config(grader_config, GraderConfig, "grader_config")
        if max_queue_depth is not None and max_queue_depth < 1:
            raise ValueError(f"max_queue_depth must be at least 1 or None, got {max_queue_depth}")
        super().__init__(BackendGateway(judge, judge_api_key))
        self.max_queue_depth = max_queue_depth
        self.workflow_rewards = workflow_rewards
        self._artifact_root = artifact_root()
        self._workflow_slots = _slots(self.workflow_config, DEFAULT_MAX_CONCURRENT)
        self._grader_slots = _slots(self.grader_config, math.inf)

    async def _run(self, rollout: LiveRollout) -> ExecutionOutcome:
        request, asked = rollout.request, time.monotonic()
        async with self._workflow_slots:
            rollout.status = RolloutStatus.RUNNING
            workflow = await self._workflow(request, rollout.context, time.monotonic() - asked)
        await rollout.workflow_ended(workflow)
        if not wants_grading(request, workflow):
            return ExecutionOutcome(workflow=workflow)
        rollout.status = RolloutStatus.GRADING
        observer().begin(GRADING_QUEUE)
        async with self._grader_slots:
            grader = await self.run_grader(request, workflow)
        return ExecutionOutcome(workflow=workflow, grader=grader)

    async def _workflow(
        self, request: ExecutionRequest, context: RolloutContext | None, queued_sec: float
    ) -> ExecutionResult:
        with phase(ENVIRONMENT):
            artifacts_dir = await asyncio.to_thread(
                provision_artifacts_dir, self._artifact_root, request.id
            )
        with phase(AGENT):
            result = await run_workflow(
                self.workflow,
                self.workflow_config,
                request,
                queued_sec=queued_sec,
                artifacts_dir=artifacts_dir,
            )
        endpoint = None if context is None else context.endpoint
        # Nobody sees what happens between a workflow and a model that it calls directly.
        is_direct = context is not None and endpoint is None and bool(context.chat_completions_url)
        result = believed(
            result,
            service_failed=is_direct or upstream_failed(endpoint),
            workflow_rewards=self.workflow_rewards,
        )
        report_calls(result, endpoint, "model_calls")
        mark_untrainable(result, endpoint)
        return result

    async def run_workflow(
        self, request: ExecutionRequest, queued_sec: float = 0.0
    ) -> ExecutionResult:
        """Run the workflow phase alone; saves nothing but the artifacts it writes."""
        return await self._workflow(request, get_rollout_context(), queued_sec)

    async def run_grader(
        self, request: ExecutionRequest, workflow: ExecutionResult
    ) -> ExecutionResult:
        """Run the grader phase alone on the result of a workflow."""
        refused = grading_refusal(request, workflow, has_grader=self.grader is not None)
        if refused is not None or self.grader is None:
            return refused or workflow
        artifacts_dir = self._artifact_root / request.id / "artifacts"
        with phase(GRADING):
            async with self.gateway.judge(request.id) as judge:
                result = await run_grader(
                    self.grader,
                    self.grader_config,
                    request,
                    workflow,
                    artifacts_dir=artifacts_dir if artifacts_dir.is_dir() else None,
                    judge=as_model(judge),
                )
                report_calls(result, judge, "judge_calls")
        return result

    def has_capacity(self) -> bool:
        """Whether fewer than ``max_queue_depth`` rollouts wait for a slot."""
        waiting = self._workflow_slots.statistics().tasks_waiting
        return self.max_queue_depth is None or waiting < self.max_queue_depth

    def health(self) -> dict[str, Any]:
        """Return the load of both phases."""
        return {
            "status": "ok",
            "backend": "local",
            "concurrency": _load(self._workflow_slots),
            "grading": _load(self._grader_slots),
            "max_queue_depth": self.max_queue_depth,
        }


def _slots(
    config: AgentWorkflowConfig | GraderConfig | None, without_config: float
) -> anyio.CapacityLimiter:
    limit = without_config if config is None else config.concurrency.max_concurrent
    return anyio.CapacityLimiter(math.inf if limit is None else limit)


def _load(slots: anyio.CapacityLimiter) -> dict[str, int | None]:
    now = slots.statistics()
    return {
        "max_concurrent": None if math.isinf(now.total_tokens) else int(now.total_tokens),
        "queued": now.tasks_waiting,
        "running": now.borrowed_tokens,
    }
