"""What a backend needs for all its trials in SkyPilot sandboxes."""

import asyncio
import logging
import time
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from pathlib import Path
from typing import Any

from harbor.models.task.config import TaskConfig
from harbor.models.trial.config import EnvironmentConfig

from harbor_backend.environments.choose import HARBORS_SKYPILOT, SKYPILOT, is_skypilot
from harbor_backend.environments.engine import shared_engine
from harbor_backend.instance import instance_id
from harbor_backend.names import trial_name
from harbor_backend.phases import GRACE_SEC
from harbor_backend.program import Program
from harbor_backend.skypilot.archives import runtime_archive
from harbor_backend.skypilot.endings import Endings
from harbor_backend.skypilot.errors import SkypilotError
from harbor_backend.skypilot.images import ensure_registry_image
from harbor_backend.skypilot.leftovers import Leftovers
from harbor_backend.skypilot.lifetime import lifetime_sec
from harbor_backend.skypilot.names import telling_trial_name
from harbor_backend.skypilot.pools import ensure_pool
from harbor_backend.skypilot.preflight import require_skypilot
from harbor_backend.skypilot.reach import Reach, reach_of
from harbor_backend.skypilot.reaper import reap_sandboxes
from harbor_backend.skypilot.refusals import Demand, check_image_source, check_task_fits
from harbor_backend.skypilot.sdk import call, load_sdk
from harbor_backend.skypilot.settings import SkypilotSettings
from harbor_backend.staging import StagedTask, set_image
from harbor_backend.tasks import TaskMode, check_task, find_tasks
from harbor_backend.trials import TrialRecord
from osmosis_ai.rollout.backend.model_routes import ModelRoutes

logger = logging.getLogger(__name__)

_CLOSE_SEC = 30.0
_open: set[int] = set()
"""The backends that use the SDK's session, of which a process has one."""


class SkypilotSandboxes:
    """The remote side of one backend: settings, way to the gateway, and what has to end.

    With Harbor's own environment, the runtime gets into sandboxes by the task's
    image or through Harbor's interface, and what it leaves is looked for.

    Raises:
        ValueError: the configuration cannot work; the text names the argument.
        SkypilotUnavailableError: SkyPilot cannot be used from here.
    """

    def __init__(
        self, config: EnvironmentConfig, agent_base_url: str | None, agent_bind: str | None
    ) -> None:
        self.settings = SkypilotSettings.of(config.kwargs)
        self._harbors_own = config.import_path == HARBORS_SKYPILOT
        if agent_bind is not None and agent_base_url is None:
            raise ValueError("agent_bind= was given without agent_base_url=, the URL it serves")
        self.reach: Reach | None = (
            None if agent_base_url is None else reach_of(agent_base_url, agent_bind)
        )
        require_skypilot()
        self._sdk = load_sdk()
        self.endings = Endings(self._sdk)
        given = self.settings.model_dump(exclude={"ensure_pool"}, exclude_none=True)
        self.environment_config = config.model_copy(
            update={
                "type": None,
                "import_path": HARBORS_SKYPILOT if self._harbors_own else SKYPILOT,
                "kwargs": given,
            }
        )
        self._leftovers = Leftovers(self.endings)
        self._reaped = False

    def check_tasks(self, tasks_dir: Path, *, template: bool) -> None:
        """Pass when the template, or at least one task of the folder, has an image.

        Raises:
            ValueError: none has; the text says what to set.
        """
        paths = [tasks_dir] if template else [tasks_dir / name for name in find_tasks(tasks_dir)]
        problems: list[ValueError] = []
        for path in paths:
            config = check_task(path, needs_instruction=False)
            try:
                check_image_source(path.name, config, path / "environment", self.settings)
            except ValueError as exc:
                problems.append(exc)
        if problems and len(problems) == len(paths):
            raise problems[0]

    async def admit(
        self, record: TrialRecord, staged: StagedTask, routes: ModelRoutes, stack: AsyncExitStack
    ) -> None:
        """Refuse what a sandbox could not do for a rollout, and give it its way to the models.

        Raises:
            ValueError: see ``check_task_fits``; or a model is called from inside, and
                there is no ``agent_base_url``.
        """
        record.remote = self
        inside = record.program.runs_inside and record.endpoint is not None
        demand = Demand(
            agent_timeout_sec=record.agent_timeout_sec,
            grader_timeout_sec=_grader_deadline(record, staged),
            agent_calls_model=inside,
            grader_calls_judge=record.judge is not None,
        )
        name = staged.path.name
        check_task_fits(name, staged.config, staged.path / "environment", self.settings, demand)
        if self.reach is None and (inside or record.judge is not None):
            raise ValueError(_NEEDS_URL)
        if inside and record.endpoint is not None:
            record.access = await routes.from_outside(record.endpoint, stack)
        if record.judge is not None:
            record.judge_access = await routes.from_outside(record.judge, stack)
        if self._harbors_own and record.program.needs_runtime:
            await self._provide_runtime(record, staged)

    def environment(
        self, base: EnvironmentConfig, record: TrialRecord, staged: StagedTask, runtime: Path
    ) -> EnvironmentConfig:
        """Complete the environment's configuration with what belongs to a rollout."""
        if self._harbors_own:
            return base
        grading = _grader_deadline(record, staged)
        steps = max(1, len(staged.config.steps or []))
        setup = staged.config.environment.build_timeout_sec
        agent = record.agent_timeout_sec
        kwargs: dict[str, Any] = {
            "runtime_dir": str(runtime) if record.program.needs_runtime else None,
            "trial_key": record.key,
            "rollout_id": record.request.id,
            "lifetime": lifetime_sec([setup, *[agent, grading, GRACE_SEC] * steps]),
            "grader_lifetime": lifetime_sec([grading, GRACE_SEC]),
        }
        return base.model_copy(update={"kwargs": {**base.kwargs, **kwargs}})

    def trial_name(self, rollout_id: str) -> str:
        """Return a fresh name for a trial; it tells the engine where Harbor names sandboxes."""
        if self._harbors_own:
            return telling_trial_name(instance_id(), rollout_id)
        return trial_name(rollout_id)

    def around_trial(self, name: str, record: TrialRecord) -> AbstractAsyncContextManager[None]:
        """Let a trial run in this block, which ends what it leaves."""
        return self._leftovers.of_trial(name, record) if self._harbors_own else nullcontext()

    async def prepare(self) -> None:
        """Make the pool, or give it its size, where that was asked for.

        Raises:
            SkypilotError: it can be neither made nor resized.
        """
        if self.settings.ensure_pool is not None and self.settings.pool is not None:
            done = await ensure_pool(self._sdk, self.settings.pool, self.settings.ensure_pool)
            logger.info("Pool %s: %s", self.settings.pool, done)

    async def prepare_task(
        self, name: str, task: TaskConfig, directory: Path, program: Program
    ) -> None:
        """Build and push a task's image, or pack the runtime that will be uploaded.

        Raises:
            ValueError: the task has no image.
            SandboxBuildFailedError: its image does not build, or cannot be pushed.
        """
        check_image_source(name, task, directory, self.settings)
        runtime = (await program.runtime()).path if program.needs_runtime else None
        registry = self._registry_for(task)
        if registry is None:
            if runtime is not None:
                (await asyncio.to_thread(runtime_archive, runtime)).close()
            return
        if runtime is None and self._harbors_own:
            return  # Harbor builds and pushes, under a name of its own
        await ensure_registry_image(shared_engine(), registry, name, directory, runtime)

    def reap_once(self, owner: AsyncExitStack) -> None:
        """Reap in the background, once per backend; ``owner`` waits for it when it closes."""
        if self._reaped:
            return
        self._reaped = True
        _open.add(id(self))
        reaping = asyncio.create_task(self._reap(), name="osmosis-skypilot-reaper")
        owner.push_async_callback(_settled, reaping)

    async def aclose(self) -> None:
        """Wait until no sandbox has to be ended any more; the last backend closes the session."""
        self._leftovers.close()
        await self.endings.settle()
        _open.discard(id(self))
        close = getattr(self._sdk, "aclose", None)
        if _open or close is None:
            return
        try:
            async with asyncio.timeout(_CLOSE_SEC):
                await call(close)
        except Exception as exc:  # the SDK's exceptions are not documented
            logger.warning("SkyPilot's session was not closed: %s: %s", type(exc).__name__, exc)

    def _registry_for(self, task: TaskConfig) -> str | None:
        """Where a task's own image is pushed; ``None`` when a pool or a prebuilt one is used."""
        if self.settings.pool or task.environment.docker_image:
            return None
        return self.settings.registry

    async def _provide_runtime(self, record: TrialRecord, staged: StagedTask) -> None:
        """Have it in the image that the task is given, or uploaded when its sandbox is there."""
        record.runtime_to_upload = runtime = (await record.program.runtime()).path
        registry = self._registry_for(staged.config)
        if registry is None:
            return
        began = time.monotonic()
        directory = staged.path / "environment"
        reference = await ensure_registry_image(
            shared_engine(), registry, staged.path.name, directory, runtime
        )
        await asyncio.to_thread(set_image, staged.path, reference)
        record.took("image", began)

    async def _reap(self) -> None:
        try:
            await reap_sandboxes(self._sdk)
        except SkypilotError as exc:
            logger.warning("Sandboxes of ended engines were not looked for: %s", exc)


_NEEDS_URL = (
    "agent_base_url= is not set, and a model is called from inside a SkyPilot sandbox: pass the "
    "address of this process as the sandboxes see it, for example "
    "agent_base_url='http://engine.default.svc.cluster.local:8900'"
)


def gateway_arguments(remote: SkypilotSandboxes | None) -> dict[str, Any]:
    """How the gateway listens for the sandboxes: arguments of ``ModelRoutes``."""
    if remote is None or remote.reach is None:
        return {}
    reach = remote.reach
    return {"host": reach.host, "port": reach.port, "advertise_url": reach.base_url}


def chat_endpoint(remote: SkypilotSandboxes | None) -> dict[str, Any]:
    """How sandboxes reach the model, for health reports."""
    environment = "docker" if remote is None else "skypilot"
    return {"environment": environment, "requires_public_url": remote is not None}


def skypilot_sandboxes(
    config: EnvironmentConfig | None,
    program: Program,
    *,
    tasks: tuple[Path, TaskMode],
    agent: tuple[str | None, str | None],
    judge: str | None,
    keep: bool,
) -> SkypilotSandboxes | None:
    """The remote side of a backend whose configuration means SkyPilot, checked as a whole.

    ``agent`` are the arguments ``agent_base_url`` and ``agent_bind``.

    Raises:
        ValueError: arguments do not fit each other or the tasks.
        SkypilotUnavailableError: SkyPilot cannot be used from here.
    """
    if not is_skypilot(config):
        if agent != (None, None):
            raise ValueError(
                "agent_base_url= and agent_bind= belong to remote sandboxes: pass "
                "environment_config=EnvironmentConfig(type='skypilot') too"
            )
        return None
    if keep:
        raise ValueError(
            "keep_sandboxes=True is not supported on SkyPilot: a sandbox ends with its trial, or "
            "when its lifetime does"
        )
    remote = SkypilotSandboxes(config, *agent)
    remote.check_tasks(tasks[0], template=tasks[1] is TaskMode.TEMPLATE)
    judged = judge is not None and program.has_grader
    if remote.reach is None and (program.calls_model_inside or judged):
        raise ValueError(_NEEDS_URL)
    return remote


def _grader_deadline(record: TrialRecord, staged: StagedTask) -> float | None:
    """Of the SDK grader, which may have none; of a task's own tests, which always have one."""
    if not staged.has_tests or record.request.grader_timeout_sec is not None:
        return record.request.grader_timeout_sec
    own = [step.verifier.timeout_sec for step in staged.config.steps or []]
    return max([staged.config.verifier.timeout_sec, *(sec for sec in own if sec is not None)])


async def _settled(reaping: "asyncio.Task[None]") -> None:
    await asyncio.wait([reaping], timeout=_CLOSE_SEC)
    reaping.cancel()
    await asyncio.gather(reaping, return_exceptions=True)
