"""SkyPilot's sandboxes as a place: in our environment, or in Harbor's own, unmodified."""

import asyncio
import logging
import time
from abc import abstractmethod
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

from harbor.models.task.config import TaskConfig
from harbor.models.trial.config import EnvironmentConfig

from harbor_backend.core.phases import GRACE_SEC
from harbor_backend.core.spec import TrialSpec
from harbor_backend.core.task_file import set_image
from harbor_backend.core.trial import Trial
from harbor_backend.places.docker.engine import shared_engine
from harbor_backend.places.harbor.sandbox import HarborSandboxMaker
from harbor_backend.places.instance import instance_id
from harbor_backend.places.place import (
    BackendNeeds,
    Environments,
    GatewayAddress,
    Place,
    TaskFiles,
    with_kwargs,
)
from harbor_backend.places.runtime_archive import runtime_archive
from harbor_backend.places.sandbox import SANDBOX_MAKER, Role
from harbor_backend.places.skypilot.errors import SkypilotError
from harbor_backend.places.skypilot.images import ensure_registry_image
from harbor_backend.places.skypilot.lifetime import MAX_EXEC_SEC, lifetime_sec
from harbor_backend.places.skypilot.names import telling_trial_name
from harbor_backend.places.skypilot.orphans import OrphanSweeper
from harbor_backend.places.skypilot.pools import ensure_pool
from harbor_backend.places.skypilot.preflight import require_skypilot
from harbor_backend.places.skypilot.reach import reach_of
from harbor_backend.places.skypilot.reaper import reap_sandboxes
from harbor_backend.places.skypilot.sdk import call, load_sdk
from harbor_backend.places.skypilot.settings import SkypilotSettings
from harbor_backend.places.skypilot.task_checks import (
    Demand,
    check_image_source,
    check_task_fits,
    left_to_platform,
)
from harbor_backend.places.skypilot.terminator import TERMINATOR, Terminator
from osmosis_ai.rollout.context import ModelEndpoint

logger = logging.getLogger(__name__)

SKYPILOT = "harbor_backend.places.skypilot.environment:SkypilotEnvironment"
HARBORS_SKYPILOT = "harbor.environments.skypilot:SkypilotEnvironment"

_CLOSE_SEC = 30.0
_NEEDS_URL = (
    "agent_base_url= is not set, and a model is called from inside a SkyPilot sandbox: pass the "
    "address of this process as the sandboxes see it, for example "
    "agent_base_url='http://engine.default.svc.cluster.local:8900'"
)
_open: set[int] = set()
"""The places that use the SDK's session, of which a process has one."""


class AnySkypilotPlace(Place):
    """Remote sandboxes: settings, the way to the gateway, and what has to end.

    Raises:
        ValueError: the configuration cannot work; the text names the argument.
        SkypilotUnavailableError: SkyPilot cannot be used from here.
    """

    name = "skypilot"
    kind = "skypilot"
    needs_public_url = True

    def __init__(
        self, config: EnvironmentConfig, agent_base_url: str | None, agent_bind: str | None
    ) -> None:
        self.settings = SkypilotSettings.of(config.kwargs)
        if agent_bind is not None and agent_base_url is None:
            raise ValueError("agent_bind= was given without agent_base_url=, the URL it serves")
        self._has_url = agent_base_url is not None
        if agent_base_url is not None:
            reach = reach_of(agent_base_url, agent_bind)
            self.gateway = GatewayAddress(reach.host, reach.port, reach.base_url)
        require_skypilot()
        self._sdk = load_sdk()
        self.terminator = Terminator(self._sdk)
        given = self.settings.model_dump(exclude={"ensure_pool"}, exclude_none=True)
        self._config = config.model_copy(update={"type": None, "kwargs": given}, deep=True)
        self._reaping: asyncio.Task[None] | None = None

    def check_backend(self, backend: BackendNeeds) -> None:
        """See ``Place``: at least one task has an image, and the gateway can be reached."""
        tasks, problems = list(backend.tasks), list[ValueError]()
        for task in tasks:
            try:
                self._check_image(task)
            except ValueError as exc:
                problems.append(exc)
        if problems and len(problems) == len(tasks):
            raise problems[0]
        program = backend.program
        judged = backend.has_judge and program.has_grader
        if not self._has_url and (program.calls_model_inside or judged):
            raise ValueError(_NEEDS_URL)

    def check(self, spec: TrialSpec) -> None:
        """See ``Place``."""
        inside = spec.program.runs_inside and spec.policy is not None
        demand = Demand(
            agent_timeout_sec=spec.agent_timeout_sec,
            grader_timeout_sec=spec.grader_timeout_sec,
            agent_calls_model=inside,
            grader_calls_judge=spec.judge is not None,
        )
        task = spec.task
        check_task_fits(task.name, task.config, task.environment_dir, self.settings, demand)
        if not self._has_url and (inside or spec.judge is not None):
            raise ValueError(_NEEDS_URL)

    def remote_model(self, url: str, token: str) -> ModelEndpoint | None:
        """See ``Place``: under the gateway's advertised URL."""
        return ModelEndpoint(url, token) if self._has_url else None

    async def start(self) -> None:
        """See ``Place``."""
        if self._reaping is None:
            _open.add(id(self))
            self._reaping = asyncio.create_task(self._reap(), name="osmosis-skypilot-reaper")

    async def aclose(self) -> None:
        """See ``Place``: wait until no sandbox has to be ended any more.

        The last place of the process closes the SDK's session.
        """
        if self._reaping is not None:
            await asyncio.wait([self._reaping], timeout=_CLOSE_SEC)
            self._reaping.cancel()
            await asyncio.gather(self._reaping, return_exceptions=True)
        await self.terminator.settle()
        _open.discard(id(self))
        close = getattr(self._sdk, "aclose", None)
        if _open or close is None:
            return
        try:
            async with asyncio.timeout(_CLOSE_SEC):
                await call(close)
        except Exception as exc:  # the SDK's exceptions are not documented
            logger.warning("SkyPilot's session was not closed: %s: %s", type(exc).__name__, exc)

    async def prepare(self) -> None:
        """See ``Place``: make the pool, or give it its size, where that was asked for."""
        if self.settings.ensure_pool is not None and self.settings.pool is not None:
            done = await ensure_pool(self._sdk, self.settings.pool, self.settings.ensure_pool)
            logger.info("Pool %s: %s", self.settings.pool, done)

    async def prepare_task(self, task: TaskFiles, runtime: Path | None) -> None:
        """See ``Place``: build and push its image, or pack the runtime that will be uploaded."""
        self._check_image(task)
        registry = self._registry_for(task.config)
        if registry is None:
            if runtime is not None:
                (await asyncio.to_thread(runtime_archive, runtime)).close()
            return
        await self._push_image(registry, task, runtime)

    @abstractmethod
    async def _push_image(self, registry: str, task: TaskFiles, runtime: Path | None) -> None:
        """Have a task's image in the registry."""

    def _check_image(self, task: TaskFiles) -> None:
        check_image_source(task.name, task.config, task.environment_dir, self.settings)

    def _registry_for(self, task: TaskConfig) -> str | None:
        """Where a task's own image is pushed; ``None`` when a pool or a prebuilt one is used."""
        if self.settings.pool or task.environment.docker_image:
            return None
        return self.settings.registry

    async def _reap(self) -> None:
        try:
            await reap_sandboxes(self._sdk)
        except SkypilotError as exc:
            logger.warning("Sandboxes of ended processes were not looked for: %s", exc)


class SkypilotPlace(AnySkypilotPlace):
    """Sandboxes in our environment: lifetimes by deadlines, ended for certain."""

    def __init__(
        self, config: EnvironmentConfig, agent_base_url: str | None, agent_bind: str | None
    ) -> None:
        super().__init__(config, agent_base_url, agent_bind)
        self._config.import_path = SKYPILOT

    async def environments(self, trial: Trial, stack: AsyncExitStack) -> Environments:
        """See ``Place``."""
        _tell_what_is_left(trial)
        trial.lend(TERMINATOR, self.terminator)
        spec = trial.spec
        grading = spec.grader_timeout_sec
        steps = max(1, len(spec.task.config.steps or []))
        setup = spec.task.config.environment.build_timeout_sec
        shared: dict[str, Any] = {
            "runtime_dir": str(spec.runtime) if spec.program.needs_runtime else None,
            "trial_key": trial.key,
            "rollout_id": spec.request.id,
        }
        lifetime = lifetime_sec([setup, *[spec.agent_timeout_sec, grading, GRACE_SEC] * steps])
        agent = with_kwargs(self._config, **shared, lifetime=lifetime)
        lifetime = lifetime_sec([grading, GRACE_SEC])
        grader = with_kwargs(self._config, **shared, lifetime=lifetime, role=Role.GRADER.value)
        return Environments(agent, grader)

    async def _push_image(self, registry: str, task: TaskFiles, runtime: Path | None) -> None:
        await ensure_registry_image(
            shared_engine(),
            registry,
            task.name,
            task.environment_dir,
            runtime,
            force_build=self._config.force_build,
        )


class HarborSkypilotPlace(AnySkypilotPlace):
    """Sandboxes in Harbor's own environment.

    The runtime gets there by the task's image or through Harbor's interface, and
    what Harbor's environment leaves is looked for.
    """

    def __init__(
        self, config: EnvironmentConfig, agent_base_url: str | None, agent_bind: str | None
    ) -> None:
        super().__init__(config, agent_base_url, agent_bind)
        self._config.import_path = HARBORS_SKYPILOT
        self._orphans = OrphanSweeper(self.terminator)

    def name_trial(self, rollout_id: str) -> str:
        """See ``Place``: it tells the process, for Harbor names sandboxes after it."""
        return telling_trial_name(instance_id(), rollout_id)

    async def environments(self, trial: Trial, stack: AsyncExitStack) -> Environments:
        """See ``Place``."""
        _tell_what_is_left(trial)
        spec = trial.spec
        upload = spec.runtime if spec.program.needs_runtime else None
        trial.lend(SANDBOX_MAKER, HarborSandboxMaker(upload, max_exec_sec=MAX_EXEC_SEC))
        registry = self._registry_for(spec.task.config)
        if upload is not None and registry is not None:
            began = time.monotonic()
            task = spec.task
            reference = await ensure_registry_image(
                shared_engine(),
                registry,
                task.name,
                task.environment_dir,
                upload,
                force_build=self._config.force_build,
            )
            await asyncio.to_thread(set_image, task.path, reference)
            trial.results.took("image", began)
        return Environments(self._config, self._config)

    def around(self, trial: Trial) -> AbstractAsyncContextManager[None]:
        """See ``Place``."""
        return self._orphans.of_trial(trial)

    async def aclose(self) -> None:
        """See ``Place``."""
        self._orphans.close()
        await super().aclose()

    async def _push_image(self, registry: str, task: TaskFiles, runtime: Path | None) -> None:
        if runtime is None:
            return  # Harbor builds and pushes, under a name of its own
        await ensure_registry_image(
            shared_engine(),
            registry,
            task.name,
            task.environment_dir,
            runtime,
            force_build=self._config.force_build,
        )


def _tell_what_is_left(trial: Trial) -> None:
    if note := left_to_platform(trial.spec.task.environment_dir):
        trial.results.note(note)
