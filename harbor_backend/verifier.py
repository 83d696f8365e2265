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

from harbor_backend.environments.choose import is_ours
from harbor_backend.environments.docker import DockerEnvironment
from harbor_backend.outcome import category_of
from harbor_backend.phases import GRADER, run_phase
from harbor_backend.ready import make_ready
from harbor_backend.trials import TrialRecord, find_trial
from osmosis_ai.rollout.container.files import ARTIFACTS_DIR, JUDGE_SOCKET, ContainerInput
from osmosis_ai.rollout.execution import failure, grading_refusal
from osmosis_ai.rollout.types.execution import ExecutionResult


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
        self._trial_key = trial_key
        self._environment_config = environment_config
        self._shared = shared

    async def verify(self) -> VerifierResult:
        """Grade, keep the whole result on the trial's record, and tell Harbor the reward."""
        record = find_trial(self._trial_key)
        record.grader = await self._grade(record)
        sample = record.grader.sample
        if sample is None or sample.reward is None:
            return VerifierResult(rewards={})
        rewards: dict[str, float | int] = {"reward": sample.reward}
        self.trial_paths.reward_json_path.write_text(json.dumps(rewards))
        return VerifierResult(rewards=rewards)

    async def _grade(self, record: TrialRecord) -> ExecutionResult:
        workflow = record.workflow
        if workflow is None:
            raise RuntimeError("a trial is graded after its workflow has a result")
        if refused := grading_refusal(record.request, workflow, has_grader=True):
            return refused
        try:
            if self._shared:
                return await self._run(record, workflow, self.environment)
            async with self._fresh_sandbox(record) as sandbox:
                return await self._run(record, workflow, sandbox)
        except Exception as exc:  # of the sandbox's environment: what ran in it raises nothing here
            self.logger.warning("The grader's sandbox failed", exc_info=exc)
            category = category_of(type(exc).__name__, "environment_setup")
            return failure(exc, sample=workflow.sample, category=category)

    async def _run(
        self, record: TrialRecord, workflow: ExecutionResult, sandbox: BaseEnvironment
    ) -> ExecutionResult:
        entry_points = record.program.entry_points
        if entry_points is None:
            raise RuntimeError("a graded trial needs entry points")
        artifacts = self.trial_paths.artifacts_dir / ARTIFACTS_DIR.lstrip("/")
        if not self._shared and artifacts.is_dir() and any(artifacts.iterdir()):
            await sandbox.upload_dir(artifacts, ARTIFACTS_DIR)
        if not self._shared:
            await _open_to_all(sandbox, ARTIFACTS_DIR)
        request = record.request
        socket, access = None, record.judge_access
        if isinstance(sandbox, DockerEnvironment):
            socket = await sandbox.serve_model(record.judge, JUDGE_SOCKET)
        result = await run_phase(
            sandbox,
            GRADER,
            ContainerInput(
                rollout_id=request.id,
                prompt=request.prompt,
                label=request.label,
                metadata=request.metadata,
                gateway_socket=socket,
                chat_completions_url="" if access is None else access.url,
                api_key=None if access is None else access.api_key,
                grader_timeout_sec=request.grader_timeout_sec,
                grader=entry_points.grader,
                grader_config=entry_points.grader_config,
                sample=workflow.sample,
            ),
            self.trial_paths.verifier_dir / "grader.log",
        )
        await self._collect(record, sandbox, artifacts)
        return result

    async def _collect(
        self, record: TrialRecord, sandbox: BaseEnvironment, artifacts: Path
    ) -> None:
        """Bring home what the grader wrote; never decides over the reward."""
        try:
            await sandbox.download_dir(ARTIFACTS_DIR, artifacts)
        except Exception as exc:  # every environment has its own
            record.note(f"The grader's artifacts were not collected: {exc}")
            self.logger.warning("The grader's artifacts were not collected: %s", exc)

    @property
    def _agent_is_done(self) -> bool:
        """Whether the agent's sandbox, if it is ours, has no further step to run."""
        ours = isinstance(self.environment, DockerEnvironment)
        ends = ours or getattr(self.environment, "ends_before_grading", False)
        return ends and not self.task.has_steps

    @asynccontextmanager
    async def _fresh_sandbox(self, record: TrialRecord) -> AsyncIterator[BaseEnvironment]:
        """A new sandbox of the task's image; the agent's is ended while it starts."""
        config = EnvironmentConfig.model_validate(self._environment_config)
        task_config = self.task.config.environment.model_copy(deep=True)
        sandbox = EnvironmentFactory.create_environment_from_config(
            config=config,
            environment_dir=self.task.paths.environment_dir,
            environment_name=self.task.short_name,
            session_id=f"{self.trial_paths.trial_dir.name}__grader",
            trial_paths=self.trial_paths,
            task_env_config=task_config,
            logger=self.logger,
            mounts=None if is_ours(config) else config.mounts,
            network_policy=grader_network(task_config.resolve_baseline()),
        )
        record.is_creating = True
        try:
            try:
                async with asyncio.TaskGroup() as starting:
                    starting.create_task(sandbox.start(force_build=False))
                    if self._agent_is_done and config.delete:
                        starting.create_task(self.environment.stop(delete=True))
            except ExceptionGroup as group:
                record.is_creating = False
                raise group.exceptions[0] from None
            await make_ready(sandbox, record, probe=False)
            yield sandbox
        finally:
            await asyncio.shield(sandbox.stop(delete=config.delete))


def grader_network(task: NetworkPolicy) -> NetworkPolicy:
    """What a grader's own sandbox may reach: no more than the task, and no allowlist."""
    if task.network_mode is NetworkMode.ALLOWLIST:
        return NetworkPolicy(network_mode=NetworkMode.NO_NETWORK)
    return task


async def _open_to_all(sandbox: BaseEnvironment, path: str) -> None:
    """Let a grader that is not root read and write below ``path``."""
    if getattr(sandbox, "needs_no_permission", False):
        return
    await sandbox.exec(f"mkdir -p {path} && chmod -R a+rwX {path}", user="root")
