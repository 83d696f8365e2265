"""HarborBackend: every rollout is one trial on the caller's Harbor queue."""

import asyncio
import logging
import shutil
import tempfile
import time
from collections.abc import Collection, Iterable
from contextlib import AsyncExitStack, nullcontext
from pathlib import Path
from typing import Any, Literal

from harbor.models.trial.config import EnvironmentConfig
from harbor.trial.queue import TrialQueue

from harbor_backend.archive import archive_trial
from harbor_backend.environments.channel_dir import make_channel_dir
from harbor_backend.environments.choose import (
    choose_environment,
    environment_name,
    has_compose,
    is_on_hosts,
    is_ours,
)
from harbor_backend.hooks import TrialHooks
from harbor_backend.names import trial_name
from harbor_backend.outcome import diagnostics, outcome_of
from harbor_backend.prewarm import Prewarm, PrewarmMode
from harbor_backend.program import Wiring, make_program
from harbor_backend.reaper import reap_once
from harbor_backend.sky_docker.fleet import Fleet, use_fleet
from harbor_backend.sky_docker.settings import fleet_settings
from harbor_backend.skypilot.sandboxes import chat_endpoint, gateway_arguments, skypilot_sandboxes
from harbor_backend.staging import StagedTask, stage_task
from harbor_backend.tasks import TaskMode, check_task, resolve_task
from harbor_backend.trial_config import (
    agent_for,
    environment_for,
    grader_environment_for,
    trial_config,
    verifier_for,
)
from harbor_backend.trials import TrialRecord
from osmosis_ai.rollout.artifacts import artifact_root, provision_artifacts_dir
from osmosis_ai.rollout.backend.base import ExecutionBackend, ResultCallback
from osmosis_ai.rollout.backend.live import LiveRollouts, cancelled_outcome
from osmosis_ai.rollout.backend.model_routes import ModelRoutes, mark_untrainable, report_calls
from osmosis_ai.rollout.container.files import GATEWAY_SOCKET
from osmosis_ai.rollout.deadline import deadline_message
from osmosis_ai.rollout.errors import DeadlineExceededError
from osmosis_ai.rollout.execution import WORKFLOW_PHASE, failure
from osmosis_ai.rollout.types.execution import ExecutionOutcome, ExecutionRequest
from osmosis_ai.rollout.types.status import RolloutErrorCategory, RolloutStatus
from osmosis_ai.telemetry.current import QUEUE

logger = logging.getLogger(__name__)


class HarborBackend(ExecutionBackend):
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
      ``ctx.judge``; see ``ModelRoutes``.
    - ``workflow_config``, ``grader_config``: module-level instances or strings.
    - ``code_dir``: the project to bundle; by default the one that owns the class.
    - ``environment_config``: forces Harbor's environment of a type, or ours, here or
      on the hosts of a cluster (``SKY_DOCKER``).
    - ``trials_dir``: where Harbor works; by default a directory of this backend.
    - ``keep_sandboxes``: leaves the containers of finished trials in the engine,
      to look into them; nothing removes them afterwards.
    - ``agent_base_url``, ``agent_bind``: for agents and graders that call a model from
      inside a SkyPilot sandbox, this process's URL as sandboxes reach it, a service in
      the cluster or public HTTPS, and the ``host:port`` that the gateway listens on.
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
    ) -> None:
        self._program = make_program(
            Wiring(agent, workflow_config, grader, grader_config, code_dir, bundle)
        )
        if native_agent_kwargs and self._program.native_agent is None:
            raise ValueError("native_agent_kwargs= needs a native agent, and agent= is a workflow")
        if grader_sandbox not in {"fresh", "shared"}:
            raise ValueError(f"grader_sandbox={grader_sandbox!r} must be 'fresh' or 'shared'")
        if max_queue_depth is not None and max_queue_depth < 1:
            raise ValueError(f"max_queue_depth must be at least 1 or None, got {max_queue_depth}")
        if patch_dockerfile_with_sdk:
            raise ValueError(
                "patch_dockerfile_with_sdk=True is not needed and not supported: the SDK is "
                "mounted into the sandbox at /opt/osmosis, and task images stay as they are"
            )
        self.task_mode = TaskMode(task_mode)
        self.tasks_dir = Path(tasks_dir).expanduser().resolve()
        if self.task_mode is TaskMode.TEMPLATE:
            check_task(self.tasks_dir, needs_instruction=False)
        elif not self.tasks_dir.is_dir():
            raise ValueError(f"tasks_dir={str(tasks_dir)!r} is not a directory of tasks")
        self.model_name = model_name
        self.max_queue_depth = max_queue_depth
        self._queue = orchestrator
        self._native_kwargs = dict(native_agent_kwargs or {})
        self._shared_grading = grader_sandbox == "shared"
        self._environment = (
            None if environment_config is None else environment_config.model_copy(deep=True)
        )
        self._hosts = (
            fleet_settings(environment_config.kwargs) if is_on_hosts(environment_config) else None
        )
        self._fleet: Fleet | None = None
        self._keep_sandboxes = keep_sandboxes
        self._setup_timeout_sec = agent_setup_timeout_sec
        self._cleanup = cleanup_successful_trials
        self._artifact_root = artifact_root()
        self._live = LiveRollouts()
        self._remote = skypilot_sandboxes(
            self._environment,
            self._program,
            tasks=(self.tasks_dir, self.task_mode),
            agent=(agent_base_url, agent_bind),
            judge=judge,
            keep=keep_sandboxes,
        )
        self._resources = AsyncExitStack()
        if self._remote is not None:
            self._environment = self._remote.environment_config
            self._resources.push_async_callback(self._remote.aclose)
        self._routes = ModelRoutes(judge, judge_api_key, **gateway_arguments(self._remote))
        self.warmup = Prewarm(self, prewarm, verified_tasks)
        self.prewarm = self.warmup.run
        self.prewarm_lifespan = self.warmup.lifespan
        # Last: nothing of a backend that is refused may stay.
        self._hooks = TrialHooks(orchestrator)
        self._work_dir = Path(tempfile.mkdtemp(prefix="osmosis-harbor-"))
        self._own_trials = trials_dir is None
        self._trials_dir = Path(trials_dir or self._work_dir / "trials").expanduser().resolve()

    async def execute(
        self,
        request: ExecutionRequest,
        on_workflow_complete: ResultCallback | None = None,
        on_grader_complete: ResultCallback | None = None,
    ) -> ExecutionOutcome:
        """Run one rollout as a trial; see ``ExecutionBackend.execute``."""
        async with self._live.admit(request.id) as live, AsyncExitStack() as stack:
            record = TrialRecord(
                request, live, self._program, on_workflow_complete=on_workflow_complete
            )
            stack.callback(record.close)
            stack.callback(record.observer.end)
            record.observer.begin(QUEUE)
            try:
                outcome = self._refused_early(request) or await self._run(record, stack)
            except asyncio.CancelledError:
                if not live.cancel_requested:
                    raise
                live.task.uncancel()
                outcome = cancelled_outcome(record.workflow)
            await self._announce(record, outcome, on_grader_complete)
            self._live.record(request.id, outcome)
            return outcome

    async def start(self) -> None:
        """Connect the hosts; begin to remove the sandboxes that a killed engine left behind."""
        await self.begin()

    def has_capacity(self) -> bool:
        """Whether fewer than ``max_queue_depth`` rollouts wait for a trial slot."""
        waiting = self._live.count(RolloutStatus.QUEUED)
        return self.max_queue_depth is None or waiting < self.max_queue_depth

    def rollout_status(self, rollout_id: str) -> dict[str, Any] | None:
        """Return ``{status, reward, err_message}``; kept 15 minutes after the end."""
        return self._live.status(rollout_id)

    async def cancel_rollouts(
        self, ids: Iterable[str] | None = None, prefix: str | None = None, all: bool = False
    ) -> dict[str, str]:
        """Cancel by exactly one selector; the sandbox is removed at once."""
        return await self._live.cancel(ids, prefix, all)

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
            "chat_endpoint": chat_endpoint(self._remote),
            "prewarm": self.warmup.summary,
            **({} if self._fleet is None else {"hosts": self._fleet.report()}),
        }

    async def begin(self) -> Fleet | None:
        """Do what comes before the first rollout: connect the hosts, or reap on this machine."""
        if self._remote is not None:
            self._remote.reap_once(self._resources)
        elif self._hosts is None:
            reap_once(self._resources)
        elif self._fleet is None:
            self._fleet = await self._resources.enter_async_context(use_fleet(self._hosts))
        return self._fleet

    async def shutdown(self) -> None:
        """Cancel every trial, wait until sandboxes and files are settled, refuse more."""
        await self._live.close()
        await self._resources.aclose()
        await self._routes.aclose()
        self._program.close()
        await asyncio.to_thread(shutil.rmtree, self._work_dir, ignore_errors=True)

    def _refused_early(self, request: ExecutionRequest) -> ExecutionOutcome | None:
        """End a rollout whose agent's deadline has passed already, without a sandbox."""
        timeout = request.agent_timeout_sec
        if timeout is None or timeout > 0:
            return None
        expired = DeadlineExceededError(deadline_message(WORKFLOW_PHASE, timeout))
        return ExecutionOutcome(workflow=failure(expired))

    async def _run(self, record: TrialRecord, stack: AsyncExitStack) -> ExecutionOutcome:
        await self.begin()
        request = record.request
        remote = self._remote
        name = trial_name(request.id) if remote is None else remote.trial_name(request.id)
        workspace = self._work_dir / "rollouts" / name
        stack.callback(shutil.rmtree, workspace, ignore_errors=True)
        await asyncio.to_thread(provision_artifacts_dir, self._artifact_root, request.id)
        try:
            staged = await self._stage(record, workspace)
            runtime = await self._program.runtime()
            record.endpoint = await self._routes.policy(request.id, stack)
            if self._program.has_grader:
                record.judge = await self._routes.judge(request.id, stack)
            if remote is not None:
                await remote.admit(record, staged, self._routes, stack)
            base = choose_environment(
                self._environment,
                staged.config,
                staged.path / "environment",
                keep=self._keep_sandboxes,
            )
            agent = agent_for(
                record,
                self._native_kwargs,
                str((request.metadata or {}).get("harbor_model") or self.model_name),
                self._setup_timeout_sec,
            )
            channel_dir = await self._channel_dir(base, record, stack)
            environment = environment_for(base, record, staged, runtime.path, channel_dir)
        except (ValueError, OSError, RuntimeError) as exc:
            logger.info("Rollout %s: not started", request.id, exc_info=exc)
            return ExecutionOutcome(workflow=failure(exc, category=_setup_category(exc)))
        config = trial_config(
            name,
            self._trials_dir,
            staged,
            agent,
            environment,
            verifier_for(
                record,
                staged,
                grader_environment_for(
                    base,
                    environment,
                    record,
                    runtime.path,
                    harbors_own=self._environment is not None
                    and not has_compose(staged.path / "environment"),
                ),
                shared=self._shared_grading,
            ),
        )
        trial_dir = self._trials_dir / name
        self._hooks.follow(name, record)
        stack.callback(self._hooks.forget, name)
        if self._own_trials:
            stack.callback(shutil.rmtree, trial_dir, ignore_errors=True)
        record.submitted_at = time.monotonic()
        around = nullcontext() if remote is None else remote.around_trial(name, record)
        try:
            async with around:
                trial = await self._queue.submit(config)
        except (ValueError, OSError, RuntimeError, SystemExit) as exc:
            # Harbor refuses some configurations when it makes the trial.
            return ExecutionOutcome(workflow=failure(exc, category=_setup_category(exc)))
        for problem in await asyncio.to_thread(
            archive_trial, trial_dir, self._artifact_root, request.id
        ):
            record.note(problem)
        outcome = await asyncio.to_thread(outcome_of, record, trial)
        report = diagnostics(record, trial, environment_name(base))
        mark_untrainable(outcome.workflow, record.endpoint)
        report_calls(outcome.workflow, record.endpoint, "model_calls")
        outcome.workflow.extra_fields.update(report)
        if outcome.grader is not None:
            mark_untrainable(outcome.grader, record.endpoint)
            report_calls(outcome.grader, record.endpoint, "model_calls")
            outcome.grader.extra_fields.update(report)
            report_calls(outcome.grader, record.judge, "judge_calls")
        sampled = outcome.workflow.sample is not None
        if self._cleanup and sampled and outcome.result.status is RolloutStatus.SUCCESS:
            await asyncio.to_thread(shutil.rmtree, trial_dir, ignore_errors=True)
        return outcome

    async def _stage(self, record: TrialRecord, workspace: Path) -> StagedTask:
        request = record.request
        source = await resolve_task(self.tasks_dir, self.task_mode, request.metadata)
        dataset = self.task_mode is TaskMode.DATASET
        if not dataset and not request.prompt:
            raise ValueError("Template mode needs the rollout's prompt, and it is empty")

        def stage() -> StagedTask:
            config = check_task(source, needs_instruction=dataset)
            if request.agent_timeout_sec is not None:
                record.agent_timeout_sec = request.agent_timeout_sec
            else:
                record.agent_timeout_sec = config.agent.timeout_sec
            workspace.mkdir(parents=True)
            return stage_task(source, workspace / source.name, self.task_mode, request.prompt)

        if dataset and request.prompt:
            record.request = request.model_copy(update={"prompt": []})
        return await asyncio.to_thread(stage)

    async def _channel_dir(
        self, base: EnvironmentConfig, record: TrialRecord, stack: AsyncExitStack
    ) -> Path | None:
        """For Harbor's environment: a mountable directory with the gateway's socket in it."""
        if is_ours(base) or record.endpoint is None or record.remote is not None:
            return None
        directory = make_channel_dir()
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        await stack.enter_async_context(
            record.endpoint.listen_unix(directory / Path(GATEWAY_SOCKET).name)
        )
        return directory

    async def _announce(
        self,
        record: TrialRecord,
        outcome: ExecutionOutcome,
        on_grader_complete: ResultCallback | None,
    ) -> None:
        if record.callback_error is not None:
            raise record.callback_error
        if record.on_workflow_complete is not None and not record.workflow_announced:
            record.workflow_announced = True
            await record.on_workflow_complete(outcome.workflow)
        if on_grader_complete is not None and outcome.grader is not None:
            await on_grader_complete(outcome.grader)


def _setup_category(exc: BaseException) -> RolloutErrorCategory:
    if isinstance(exc, ValueError | FileNotFoundError):
        return RolloutErrorCategory.VALIDATION_ERROR
    return RolloutErrorCategory.INFRASTRUCTURE_ERROR
