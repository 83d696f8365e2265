"""The Harbor verifier that runs an SDK ``Grader`` where the agent cannot reach."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment
from harbor.environments.factory import EnvironmentFactory
from harbor.models.task.config import NetworkMode, NetworkPolicy
from harbor.models.trial.config import EnvironmentConfig
from harbor.models.verifier.result import VerifierResult
from harbor.verifier.base import BaseVerifier

from harbor_backend.core.phases import GRADER
from harbor_backend.core.trial import find_trial
from harbor_backend.places.sandbox import ModelRoute, Role, Sandbox, sandbox_of
from harbor_backend.trial.categories import category_of
from harbor_backend.trial.phase import run_phase
from osmosis_ai.rollout.container.files import ARTIFACTS_DIR, JUDGE_SOCKET, ContainerInput
from osmosis_ai.rollout.execution import failure, grading_refusal
from osmosis_ai.rollout.types.execution import ExecutionResult
from osmosis_ai.rollout.types.status import RolloutStatus


class GraderVerifier(BaseVerifier):
    """Grades the sample that the host collected, in a sandbox of its own.

    ``shared`` grades in the agent's sandbox instead, where whatever the agent
    left running can interfere: for trusted agents only.
    """

    def __init__(
        self,
        *,
        trial_key: str,
        environment_config: dict[str, Any],
        shared: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._trial = find_trial(trial_key)
        self._environment_config = environment_config
        self._shared = shared

    async def verify(self) -> VerifierResult:
        """Grade, keep the whole result on the trial, and tell Harbor the reward.

        A workflow that failed is not graded, though some versions of Harbor ask for it.
        """
        workflow = self._trial.results.workflow
        if workflow is not None and workflow.status is not RolloutStatus.SUCCESS:
            return VerifierResult(rewards={})
        self._trial.results.grader = graded = await self._grade()
        if graded.sample is None or graded.sample.reward is None:
            return VerifierResult(rewards={})
        rewards: dict[str, float | int] = {"reward": graded.sample.reward}
        self.trial_paths.reward_json_path.write_text(json.dumps(rewards))
        return VerifierResult(rewards=rewards)

    async def _grade(self) -> ExecutionResult:
        workflow = self._trial.results.workflow
        if workflow is None:
            raise RuntimeError("a trial is graded after its workflow has a result")
        if refused := grading_refusal(self._trial.spec.request, workflow, has_grader=True):
            return refused
        try:
            if self._shared:
                return await self._run(workflow, self.environment)
            async with self._fresh_sandbox() as environment:
                return await self._run(workflow, environment)
        except Exception as exc:  # of the sandbox's environment: what ran in it raises nothing here
            self.logger.warning("The grader's sandbox failed", exc_info=exc)
            kind = type(exc).__name__
            category = category_of(kind, "environment_setup", message=str(exc))
            return failure(exc, sample=workflow.sample, category=category)

    async def _run(
        self, workflow: ExecutionResult, environment: BaseEnvironment
    ) -> ExecutionResult:
        sandbox = sandbox_of(environment, self._trial, Role.GRADER)
        if not self._shared:
            await sandbox.make_ready()
        artifacts = self.trial_paths.artifacts_dir / ARTIFACTS_DIR.lstrip("/")
        if not self._shared and artifacts.is_dir() and any(artifacts.iterdir()):
            await environment.upload_dir(artifacts, ARTIFACTS_DIR)
        if not self._shared:
            await sandbox.open_directory(ARTIFACTS_DIR)
        task = await self._task(workflow, sandbox)
        result = await run_phase(
            sandbox,
            GRADER,
            task,
            self.trial_paths.verifier_dir / "grader.log",
            self._trial.spec.max_result_bytes,
        )
        await self._collect(environment, artifacts)
        return result

    async def _task(self, workflow: ExecutionResult, sandbox: Sandbox) -> ContainerInput:
        spec = self._trial.spec
        entry_points, request, route = spec.program.entry_points, spec.request, ModelRoute()
        if entry_points is None:
            raise RuntimeError("a graded trial needs entry points")
        if spec.judge is not None:
            route = await sandbox.serve_model(spec.judge, JUDGE_SOCKET)
        return ContainerInput(
            rollout_id=request.id,
            prompt=request.prompt,
            label=request.label,
            metadata=request.metadata,
            gateway_socket=route.socket,
            chat_completions_url=route.url,
            api_key=route.api_key,
            grader_timeout_sec=request.grader_timeout_sec,
            grader=entry_points.grader,
            grader_config=entry_points.grader_config,
            sample=workflow.sample,
        )

    async def _collect(self, environment: BaseEnvironment, artifacts: Path) -> None:
        """Bring home what the grader wrote; never decides over the reward."""
        try:
            await environment.download_dir(ARTIFACTS_DIR, artifacts)
        except Exception as exc:  # every environment has its own
            self._trial.results.note(f"The grader's artifacts were not collected: {exc}")
            self.logger.warning("The grader's artifacts were not collected: %s", exc)

    @property
    def _agent_is_done(self) -> bool:
        """Whether the agent's sandbox has no further step to run, and nothing in it is needed."""
        sandbox = sandbox_of(self.environment, self._trial, Role.AGENT)
        return sandbox.ends_before_grading and not self.task.has_steps

    @asynccontextmanager
    async def _fresh_sandbox(self) -> AsyncIterator[BaseEnvironment]:
        """A new sandbox of the task's image; the agent's is ended while it starts."""
        config = EnvironmentConfig.model_validate(self._environment_config)
        task_config = self.task.config.environment.model_copy(deep=True)
        environment = EnvironmentFactory.create_environment_from_config(
            config=config,
            environment_dir=self.task.paths.environment_dir,
            environment_name=self.task.short_name,
            session_id=f"{self.trial_paths.trial_dir.name}__grader",
            trial_paths=self.trial_paths,
            task_env_config=task_config,
            logger=self.logger,
            mounts=config.mounts,
            network_policy=grader_network(task_config.resolve_baseline()),
        )
        self._trial.sandbox_wait.asked()
        try:
            try:
                async with asyncio.TaskGroup() as starting:
                    starting.create_task(environment.start(force_build=False))
                    if self._agent_is_done and config.delete:
                        starting.create_task(self.environment.stop(delete=True))
            except ExceptionGroup as group:
                self._trial.sandbox_wait.over()
                raise group.exceptions[0] from None
            self._trial.sandbox_wait.over()
            yield environment
        finally:
            await asyncio.shield(environment.stop(delete=config.delete))


def grader_network(task: NetworkPolicy) -> NetworkPolicy:
    """What a grader's own sandbox may reach: no more than the task, and no allowlist."""
    if task.network_mode is NetworkMode.ALLOWLIST:
        return NetworkPolicy(network_mode=NetworkMode.NO_NETWORK)
    return task
