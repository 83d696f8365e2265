"""HarborBackend: every rollout is one trial on the caller's Harbor queue."""

import asyncio
import logging
import shutil
import tempfile
import time
from collections.abc import Collection
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Literal

from harbor.models.trial.config import EnvironmentConfig
from harbor.models.trial.result import TrialResult
from harbor.trial.queue import TrialQueue

from harbor_backend.arguments import check_arguments
from harbor_backend.core.spec import AgentOptions
from harbor_backend.core.trial import Trial, TrialRegistry
from harbor_backend.harbor_logs import quiet_harbor
from harbor_backend.places.choose import choose_place
from harbor_backend.places.place import BackendNeeds, Place
from harbor_backend.prewarm import Prewarm, PrewarmMode
from harbor_backend.program.program import ProgramArguments, make_program
from harbor_backend.trial.conclude import NOT_STARTED, conclude, not_started
from harbor_backend.trial.config import trial_config
from harbor_backend.trial.hooks import TrialHooks
from harbor_backend.trial.plan import TrialPlanner
from harbor_backend.trial.task_folder import TaskFolder
from harbor_backend.trial.tasks import TaskMode
from osmosis_ai.rollout.artifacts import artifact_root, provision_artifacts_dir
from osmosis_ai.rollout.backend.gateway import BackendGateway
from osmosis_ai.rollout.backend.lifecycle import LifecycleBackend
from osmosis_ai.rollout.backend.live import LiveRollout
from osmosis_ai.rollout.container.files import MAX_RESULT_BYTES
from osmosis_ai.rollout.types.execution import ExecutionOutcome
from osmosis_ai.rollout.types.status import RolloutStatus

logger = logging.getLogger(__name__)


class HarborBackend(LifecycleBackend):
    """Runs workflows, or native Harbor agents, as Harbor trials in fresh sandboxes.

    Template mode runs every prompt in one task's environment; dataset mode runs
    the tasks of a folder with their own instructions and verifiers. Keyword
    arguments:

    - ``orchestrator``: the Harbor ``TrialQueue``; it bounds concurrency. Keep
      its ``max_retries`` at 0: an outcome is final.
    - ``tasks_dir``: the template task, or the folder of tasks.
    - ``agent``: an ``AgentWorkflow`` class, ``"module:Class"``, or the name of a
      native agent (``terminus-2``, ``mini-swe-agent``, ``opencode``, ``oracle``,
      …); ``bundle``: a prebuilt wheel instead.
    - ``native_agent_kwargs``, ``model_name``: for native agents; a rollout's
      ``metadata["harbor_model"]`` wins over ``model_name``.
    - ``grader``: an SDK ``Grader`` (class or string). A task's own tests always
      win over it; ``None`` means the task's tests.
    - ``grader_sandbox``: ``"fresh"`` grades where no process of the agent ever
      ran, ``"shared"`` in the agent's sandbox, for trusted agents only.
    - ``judge``, ``judge_api_key``: the model that graders may ask through
      ``ctx.judge``; see ``BackendGateway``.
    - ``workflow_config``, ``grader_config``: module-level instances or strings.
    - ``code_dir``: the project to bundle; by default the one that owns the class.
    - ``environment_config``: forces where sandboxes live: Harbor's environment of a
      type, or containers of ours, here (``DOCKER``) or on the hosts of a cluster
      (``SKY_DOCKER``).
    - ``trials_dir``: where Harbor works; by default a directory of this backend.
    - ``keep_sandboxes``: leaves the containers of finished trials in the engine,
      to look into them; nothing removes them afterwards.
    - ``force_build``: builds images of tasks again, once, and from their Dockerfiles even
      where they name a ``docker_image``; unchanged steps come from the builder's cache.
    - ``agent_base_url``, ``agent_bind``: for agents and graders that call a model from
      inside a SkyPilot sandbox, this process's URL as sandboxes reach it, a service in
      the cluster or public HTTPS, and the ``host:port`` that the gateway listens on.
    - ``workflow_rewards``: a reward that the workflow itself sets counts, where neither
      grader nor tests set another; else it is cleared.
    - ``max_result_bytes``: how large the result of a workflow or grader may be.
    - ``max_queue_depth``: how many rollouts may wait before ``has_capacity()``
      says no.

    Raises:
        ValueError, TypeError, ImportError: an argument cannot work; the text
            names it, its value and the remedy.
    """

    def __init__(
        self,
        *,
        orchestrator: TrialQueue,
        tasks_dir: Path | str,
        agent: Any = None,
        native_agent_kwargs: dict[str, Any] | None = None,
        task_mode: TaskMode | str = TaskMode.TEMPLATE,
        model_name: str = "openai/osmosis-rollout",
        grader: Any = None,
        grader_sandbox: Literal["fresh", "shared"] = "fresh",
        workflow_config: Any = None,
        grader_config: Any = None,
        code_dir: Path | str | None = None,
        bundle: Path | str | None = None,
        judge: str | None = None,
        judge_api_key: str | None = None,
        environment_config: EnvironmentConfig | None = None,
        agent_base_url: str | None = None,
        agent_bind: str | None = None,
        trials_dir: Path | str | None = None,
        cleanup_successful_trials: bool = True,
        patch_dockerfile_with_sdk: bool | None = None,
        agent_setup_timeout_sec: float | None = None,
        max_queue_depth: int | None = None,
        prewarm: PrewarmMode | str | bool | None = None,
        verified_tasks: bool | Collection[str] = False,
        keep_sandboxes: bool = False,
        force_build: bool = False,
        workflow_rewards: bool = False,
        max_result_bytes: int = MAX_RESULT_BYTES,
    ) -> None:
        arguments = ProgramArguments(
            agent, workflow_config, grader, grader_config, code_dir, bundle
        )
        self._program = make_program(arguments)
        check_arguments(
            self._program,
            native_agent_kwargs=native_agent_kwargs,
            grader_sandbox=grader_sandbox,
            max_queue_depth=max_queue_depth,
            max_result_bytes=max_result_bytes,
            patch_dockerfile_with_sdk=patch_dockerfile_with_sdk,
        )
        self._tasks = TaskFolder(tasks_dir, task_mode)
        self._place = choose_place(
            environment_config,
            agent_base_url=agent_base_url,
            agent_bind=agent_bind,
            keep=keep_sandboxes,
            force_build=force_build,
        )
        self._place.check_backend(
            BackendNeeds(self._program, self._tasks.all_files(), has_judge=judge is not None)
        )
        address = self._place.gateway
        super().__init__(
            BackendGateway(
                judge,
                judge_api_key,
                host=address.host,
                port=address.port,
                advertise_url=address.advertise_url,
            )
        )
        self.task_mode, self.tasks_dir = self._tasks.mode, self._tasks.folder
        self.model_name = model_name
        self.max_queue_depth = max_queue_depth
        self._cleanup = cleanup_successful_trials
        self._artifact_root = artifact_root()
        self.warmup = Prewarm(self._program, self._tasks, self._place, prewarm, verified_tasks)
        self.prewarm = self.warmup.run
        self.prewarm_lifespan = self.warmup.lifespan
        # Last: nothing of a backend that is refused may stay.
        quiet_harbor()
        self._queue = orchestrator
        self._trials = TrialRegistry()
        self._hooks = TrialHooks(orchestrator, self._trials)
        self._work_dir = Path(tempfile.mkdtemp(prefix="osmosis-harbor-"))
        self._own_trials = trials_dir is None
        self._planner = TrialPlanner(
            tasks=self._tasks,
            program=self._program,
            place=self._place,
            gateway=self.gateway,
            options=AgentOptions(model_name, native_agent_kwargs or {}, agent_setup_timeout_sec),
            shared_grading=grader_sandbox == "shared",
            workflow_rewards=workflow_rewards,
            max_result_bytes=max_result_bytes,
            work_dir=self._work_dir,
            trials_dir=Path(trials_dir or self._work_dir / "trials").expanduser().resolve(),
        )

    async def start(self) -> None:
        """Connect the hosts; begin to remove the sandboxes that a killed engine left behind."""
        await self._place.start()

    async def check_reachable(self, task_ids: Collection[str] = ()) -> None:
        """Pass when sandboxes of these tasks can be started now.

        Raises:
            HarborBackendError: they cannot; the text says what is missing.
        """
        await self._place.check_reachable([self._tasks.files(task_id) for task_id in task_ids])

    def has_capacity(self) -> bool:
        """Whether fewer than ``max_queue_depth`` rollouts wait for a trial slot."""
        waiting = self._live.count(RolloutStatus.QUEUED)
        return self.max_queue_depth is None or waiting < self.max_queue_depth

    def health(self) -> dict[str, Any]:
        """Return the load, and how sandboxes reach the model."""
        queued = self._live.count(RolloutStatus.QUEUED)
        return {
            "status": "ok",
            "backend": "harbor",
            "agent": self._program.native_agent or "workflow",
            "in_flight": len(self._live),
            "queued": queued,
            "running": len(self._live) - queued,
            "max_queue_depth": self.max_queue_depth,
            "chat_endpoint": {
                "environment": self._place.kind,
                "requires_public_url": self._place.needs_public_url,
            },
            "prewarm": self.warmup.summary,
            **self._place.report(),
        }

    async def shutdown(self) -> None:
        """Cancel every trial, wait until sandboxes and files are settled, refuse more."""
        await self._live.close()
        await self._place.aclose()
        await super().shutdown()
        self._program.close()
        await asyncio.to_thread(shutil.rmtree, self._work_dir, ignore_errors=True)

    async def _run(self, rollout: LiveRollout) -> ExecutionOutcome:
        """Run a rollout as a trial; see ``LifecycleBackend``."""
        await self._place.start()
        await asyncio.to_thread(provision_artifacts_dir, self._artifact_root, rollout.id)
        async with AsyncExitStack() as stack:
            try:
                spec, place = await self._planner.plan(rollout, stack)
                trial = Trial(spec, rollout)
                stack.enter_context(self._trials.living(trial))
                result = await self._submit(trial, place, stack)
            except NOT_STARTED as exc:
                logger.info("Rollout %s: not started", rollout.id, exc_info=exc)
                return not_started(exc)
            return await conclude(
                trial,
                result,
                place.name,
                self._artifact_root,
                cleanup=self._cleanup,
                move=self._own_trials,
            )

    async def _submit(self, trial: Trial, place: Place, stack: AsyncExitStack) -> TrialResult:
        """Have Harbor run a trial in its place; what Harbor wrote goes when ``stack`` closes."""
        environments = await place.environments(trial, stack)
        config = trial_config(trial, environments)
        if self._own_trials:
            stack.callback(shutil.rmtree, trial.spec.trial_dir, ignore_errors=True)
        trial.submitted_at = time.monotonic()
        async with place.around(trial):
            return await self._queue.submit(config)
