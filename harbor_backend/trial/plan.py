"""Deciding everything about a trial before Harbor runs it."""

import asyncio
import shutil
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harbor_backend.core.spec import AgentOptions, Model, StagedTask, TrialSpec
from harbor_backend.places.place import Place
from harbor_backend.program.program import Program
from harbor_backend.trial.staging import stage_task
from harbor_backend.trial.task_folder import TaskFolder
from harbor_backend.trial.tasks import TaskError, check_task
from osmosis_ai.rollout.backend.gateway import BackendGateway
from osmosis_ai.rollout.backend.live import LiveRollout
from osmosis_ai.rollout.types.execution import ExecutionRequest

if TYPE_CHECKING:
    from osmosis_ai.gateway import Endpoint


@dataclass(frozen=True)
class TrialPlanner:
    """Makes the ``TrialSpec`` of each rollout of a backend.

    ``work_dir`` is where tasks are staged, and ``trials_dir`` where Harbor works.
    """

    tasks: TaskFolder
    program: Program
    place: Place
    gateway: BackendGateway
    options: AgentOptions
    shared_grading: bool
    workflow_rewards: bool
    max_result_bytes: int
    work_dir: Path
    trials_dir: Path

    async def plan(self, rollout: LiveRollout, stack: AsyncExitStack) -> tuple[TrialSpec, Place]:
        """Stage the rollout's task, have the runtime, open its models; all held by ``stack``.

        Returns what the trial is, and the place that its task belongs to.

        Raises:
            ValueError, OSError, RuntimeError: the rollout cannot run as it is.
        """
        request = rollout.request
        name = self.place.name_trial(request.id)
        task = await self._stage(request, self.work_dir / "rollouts" / name, stack)
        if not self.tasks.is_template and request.prompt:
            request = request.model_copy(update={"prompt": []})
        place = self.place.of(task)
        runtime = await self.program.runtime()
        policy = await stack.enter_async_context(self.gateway.policy(request.id, rollout.context))
        judge = None
        if self.program.has_grader:
            judge = await stack.enter_async_context(self.gateway.judge(request.id))
        spec = TrialSpec(
            name=name,
            trials_dir=self.trials_dir,
            request=request,
            program=self.program,
            task=task,
            runtime=runtime.path,
            agent_timeout_sec=(
                task.config.agent.timeout_sec
                if request.agent_timeout_sec is None
                else request.agent_timeout_sec
            ),
            options=self.options,
            policy=_model(place, policy, inside=self.program.runs_inside),
            judge=_model(place, judge, inside=True),
            shared_grading=self.shared_grading,
            workflow_rewards=self.workflow_rewards,
            max_result_bytes=self.max_result_bytes,
        )
        place.check(spec)
        return spec, place

    async def _stage(
        self, request: ExecutionRequest, workspace: Path, stack: AsyncExitStack
    ) -> StagedTask:
        stack.callback(shutil.rmtree, workspace, ignore_errors=True)
        source = await self.tasks.resolve(request.metadata)
        is_template = self.tasks.is_template
        if is_template and not request.prompt:
            raise TaskError("Template mode needs the rollout's prompt, and it is empty")

        def stage() -> StagedTask:
            check_task(source, needs_instruction=not is_template)
            workspace.mkdir(parents=True)
            return stage_task(
                source,
                workspace / source.name,
                self.tasks.mode,
                request.prompt,
                in_place=self.place.reads_services_in_place,
            )

        return await asyncio.to_thread(stage)


def _model(place: Place, endpoint: "Endpoint | None", *, inside: bool) -> Model | None:
    """A model as a trial has it; a place reaches it its own way from inside."""
    if endpoint is None:
        return None
    remote = place.remote_model(endpoint.url, endpoint.token) if inside else None
    return Model(endpoint, remote)
