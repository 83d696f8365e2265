"""LocalBackend: runs workflow and grader in the current process."""

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import Any

from local_backend.slots import Slots
from osmosis_ai.rollout.artifacts import artifact_root, provision_artifacts_dir
from osmosis_ai.rollout.backend.base import ExecutionBackend, ResultCallback
from osmosis_ai.rollout.backend.live import LiveRollout, LiveRollouts, cancelled_outcome
from osmosis_ai.rollout.backend.model_routes import (
    ModelRoutes,
    as_model,
    caller_endpoint,
    mark_untrainable,
    report_calls,
)
from osmosis_ai.rollout.execution import (
    grading_refusal,
    run_grader,
    run_workflow,
    wants_grading,
)
from osmosis_ai.rollout.grader import Grader
from osmosis_ai.rollout.types.config import AgentWorkflowConfig, GraderConfig
from osmosis_ai.rollout.types.execution import ExecutionOutcome, ExecutionRequest, ExecutionResult
from osmosis_ai.rollout.types.status import RolloutStatus
from osmosis_ai.rollout.wiring import resolve_config, resolve_grader, resolve_workflow
from osmosis_ai.rollout.workflow import AgentWorkflow
from osmosis_ai.telemetry.current import (
    AGENT,
    ENVIRONMENT,
    GRADING,
    GRADING_QUEUE,
    QUEUE,
    observer,
    phase,
)

DEFAULT_MAX_CONCURRENT = 4


class LocalBackend(ExecutionBackend):
    """Workflow and grader as coroutines in this process, for trusted code.

    Nothing is isolated: rollouts share the process, its files and its
    environment, and code that blocks the event loop stalls every rollout.

    ``workflow`` and ``grader`` are classes or ``"module:attr"``; the configs are
    instances or ``"module:attr"``. Each run gets its own copy of both configs.
    Workflows at once: ``workflow_config.concurrency``, or 4 without a config.
    Gradings at once: ``grader_config.concurrency``, independent of the former.
    ``judge``, ``judge_api_key``: the model that graders may ask through
    ``ctx.judge``; see ``ModelRoutes``.
    ``max_queue_depth`` bounds how many rollouts may wait for a workflow slot
    before ``has_capacity()`` says no (``None``: any number).

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
    ) -> None:
        self.workflow = resolve_workflow(workflow)
        self.workflow_config = resolve_config(
            workflow_config, AgentWorkflowConfig, "workflow_config"
        )
        self.grader = resolve_grader(grader)
        self.grader_config = resolve_config(grader_config, GraderConfig, "grader_config")
        if max_queue_depth is not None and max_queue_depth < 1:
            raise ValueError(f"max_queue_depth must be at least 1 or None, got {max_queue_depth}")
        self.max_queue_depth = max_queue_depth
        self._artifact_root = artifact_root()
        self._workflow_slots = Slots(_limit(self.workflow_config, DEFAULT_MAX_CONCURRENT))
        self._grader_slots = Slots(_limit(self.grader_config, None))
        self._routes = ModelRoutes(judge, judge_api_key)
        self._live = LiveRollouts()

    async def execute(
        self,
        request: ExecutionRequest,
        on_workflow_complete: ResultCallback | None = None,
        on_grader_complete: ResultCallback | None = None,
    ) -> ExecutionOutcome:
        """Run and grade one rollout; see ``ExecutionBackend.execute``."""
        async with self._live.admit(request.id) as live:
            finished: ExecutionResult | None = None
            try:
                observer().begin(QUEUE)
                async with self._workflow_slots.hold() as queued_sec:
                    live.status = RolloutStatus.RUNNING
                    workflow = await self.run_workflow(request, queued_sec=queued_sec)
                finished = workflow
                if live.cancel_requested:
                    raise asyncio.CancelledError  # user code swallowed the one it was sent
                if on_workflow_complete is not None:
                    await on_workflow_complete(workflow)
                outcome = await self._grade(live, request, workflow, on_grader_complete)
            except asyncio.CancelledError:
                if not live.cancel_requested:
                    raise
                live.task.uncancel()
                outcome = cancelled_outcome(finished)
            if live.cancel_requested and outcome.result.status is not RolloutStatus.CANCELLED:
                # A grader swallowed the cancellation and went on to an end of its own.
                live.task.uncancel()
                outcome = cancelled_outcome(finished)
            self._live.record(request.id, outcome)
            return outcome

    async def run_workflow(
        self, request: ExecutionRequest, queued_sec: float = 0.0
    ) -> ExecutionResult:
        """Run the workflow phase alone; saves nothing but the artifacts it writes."""
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
        endpoint = caller_endpoint()
        report_calls(result, endpoint, "model_calls")
        mark_untrainable(result, endpoint)
        return result

    async def run_grader(
        self, request: ExecutionRequest, workflow: ExecutionResult
    ) -> ExecutionResult:
        """Run the grader phase alone on the result of a workflow."""
        refused = grading_refusal(request, workflow, has_grader=self.grader is not None)
        if refused is not None or self.grader is None:
            return refused or workflow
        artifacts_dir = self._artifact_root / request.id / "artifacts"
        async with AsyncExitStack() as stack:
            stack.enter_context(phase(GRADING))
            judge = await self._routes.judge(request.id, stack)
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
        return self.max_queue_depth is None or self._workflow_slots.queued < self.max_queue_depth

    def rollout_status(self, rollout_id: str) -> dict[str, Any] | None:
        """Return ``{status, reward, err_message}``; kept 15 minutes after the end."""
        return self._live.status(rollout_id)

    async def cancel_rollouts(
        self, ids: Iterable[str] | None = None, prefix: str | None = None, all: bool = False
    ) -> dict[str, str]:
        """Cancel by exactly one selector; user code is asked, not forced, to stop."""
        return await self._live.cancel(ids, prefix, all)

    def health(self) -> dict[str, Any]:
        """Return the load of both phases."""
        return {
            "status": "ok",
            "backend": "local",
            "concurrency": {
                "max_concurrent": self._workflow_slots.limit,
                "queued": self._workflow_slots.queued,
                "running": self._workflow_slots.running,
            },
            "grading": {
                "max_concurrent": self._grader_slots.limit,
                "queued": self._grader_slots.queued,
                "running": self._grader_slots.running,
            },
            "max_queue_depth": self.max_queue_depth,
        }

    async def shutdown(self) -> None:
        """Cancel what runs, wait for it, and refuse more."""
        await self._live.close()
        await self._routes.aclose()

    async def _grade(
        self,
        live: LiveRollout,
        request: ExecutionRequest,
        workflow: ExecutionResult,
        on_grader_complete: ResultCallback | None,
    ) -> ExecutionOutcome:
        if not wants_grading(request, workflow):
            return ExecutionOutcome(workflow=workflow)
        live.status = RolloutStatus.GRADING
        observer().begin(GRADING_QUEUE)
        async with self._grader_slots.hold():
            grader = await self.run_grader(request, workflow)
        if on_grader_complete is not None:
            await on_grader_complete(grader)
        return ExecutionOutcome(workflow=workflow, grader=grader)


def _limit(
    config: AgentWorkflowConfig | GraderConfig | None, without_config: int | None
) -> int | None:
    return without_config if config is None else config.concurrency.max_concurrent
