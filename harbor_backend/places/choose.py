"""Which place a backend's sandboxes live in."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from harbor.models.environment_type import EnvironmentType
from harbor.models.task.config import NetworkMode, TaskConfig, TaskOS, VerifierConfig
from harbor.models.trial.config import EnvironmentConfig

from harbor_backend.core.spec import StagedTask
from harbor_backend.core.trial import Trial
from harbor_backend.places.docker.place import ENVIRONMENT, DockerPlace
from harbor_backend.places.harbor.compose import has_services
from harbor_backend.places.harbor.place import HarborDockerPlace, HarborPlace
from harbor_backend.places.place import Environments, Place, TaskFiles
from harbor_backend.places.skypilot.place import (
    HARBORS_SKYPILOT,
    SKYPILOT,
    HarborSkypilotPlace,
    SkypilotPlace,
)
from harbor_backend.places.ssh.hosts import SshHosts
from harbor_backend.places.ssh.settings import fleet_settings, split_arguments

DOCKER = ENVIRONMENT
"""``EnvironmentConfig(import_path=DOCKER)`` forces containers of ours."""

SKY_DOCKER = "harbor_backend:SkyDockerEnvironment"
"""The same on the hosts of a cluster; no class, only a name that is understood here."""

_DOCKER_NAMES = {DOCKER, "harbor_backend.environments.docker:DockerEnvironment"}
_HARBORS_DOCKER = "harbor.environments.docker.docker:DockerEnvironment"
_SKY_DOCKER_NAMES = {
    SKY_DOCKER,
    "harbor_backend.sky_docker.environment:SkyDockerEnvironment",
}
_CONTAINER_ARGUMENTS = frozenset({"supervise", "fallback_image"})


def choose_place(
    config: EnvironmentConfig | None,
    *,
    agent_base_url: str | None = None,
    agent_bind: str | None = None,
    keep: bool = False,
    force_build: bool = False,
) -> Place:
    """The place that a caller's ``environment_config`` means.

    Without one, containers of ours run every task that needs one container only,
    and Harbor's Docker environment the others. ``agent_base_url`` and
    ``agent_bind`` are how remote sandboxes reach this process; ``keep`` leaves
    containers in the engine; ``force_build`` has images of tasks built again.

    Raises:
        ValueError: an argument is wrong, or does not fit the others.
        SkypilotUnavailableError: SkyPilot cannot be used from here.
    """
    if config is not None and force_build:
        config = config.model_copy(update={"force_build": True})
    if config is not None and (
        config.import_path in {SKYPILOT, HARBORS_SKYPILOT}
        or config.type is EnvironmentType.SKYPILOT
    ):
        if keep:
            raise ValueError(
                "keep_sandboxes=True is not supported on SkyPilot: a sandbox ends with its trial, "
                "or when its lifetime does"
            )
        harbors_own = config.import_path == HARBORS_SKYPILOT
        kind = HarborSkypilotPlace if harbors_own else SkypilotPlace
        return kind(config, agent_base_url, agent_bind)
    if (agent_base_url, agent_bind) != (None, None):
        raise ValueError(
            "agent_base_url= and agent_bind= belong to remote sandboxes: pass "
            "environment_config=EnvironmentConfig(type='skypilot') too"
        )
    if config is None:
        return DockerOrHarborPlace(keep=keep, force_build=force_build)
    if config.import_path in _DOCKER_NAMES:
        return DockerPlace(config, keep=keep)
    if config.import_path in _SKY_DOCKER_NAMES:
        about_hosts, own = split_arguments(config.kwargs, _CONTAINER_ARGUMENTS)
        hosts = SshHosts(fleet_settings(about_hosts))
        config = config.model_copy(update={"kwargs": own})
        return DockerPlace(config, hosts, name="sky-docker", keep=keep)
    if config.type is EnvironmentType.DOCKER or config.import_path == _HARBORS_DOCKER:
        return HarborDockerPlace(config, forced=True, keep=keep)
    return HarborPlace(config, keep=keep)


class DockerOrHarborPlace(Place):
    """Containers of ours where a task allows it, else Harbor's Docker environment."""

    name = "docker"

    def __init__(self, *, keep: bool = False, force_build: bool = False) -> None:
        ours = EnvironmentConfig(import_path=DOCKER, force_build=force_build)
        harbors = EnvironmentConfig(type=EnvironmentType.DOCKER, force_build=force_build)
        self._ours = DockerPlace(ours, keep=keep)
        self._harbors = HarborDockerPlace(harbors, keep=keep)

    def of(self, task: StagedTask | TaskFiles) -> Place:
        """See ``Place``."""
        needs = needs_harbor(task.config, task.path)
        return self._harbors if needs else self._ours

    async def start(self) -> None:
        """See ``Place``."""
        await self._ours.start()

    async def environments(self, trial: Trial, stack: AsyncExitStack) -> Environments:
        """See ``Place``."""
        return await self.of(trial.spec.task).environments(trial, stack)

    async def check_reachable(self, tasks: Sequence[TaskFiles]) -> None:
        """See ``Place``."""
        await self._ours.check_reachable(tasks)
        if composed := [task for task in tasks if self.of(task) is self._harbors]:
            await self._harbors.check_reachable(composed)

    async def aclose(self) -> None:
        """See ``Place``."""
        await self._ours.aclose()
        await self._harbors.aclose()


def needs_harbor(task: TaskConfig, path: Path) -> bool:
    """Whether a task, which lies at ``path``, asks for what containers of ours do not do.

    Several services, an allowlist, phases with different networks, an
    accelerator or Windows.
    """
    environment = task.environment
    baseline = environment.resolve_baseline().network_mode
    phases = [task.agent, task.verifier]
    for step in task.steps or []:
        phases += [step.agent, step.verifier]
    policies = [policy for phase in phases if (policy := phase.explicit_phase_policy())]
    modes = {baseline, *(policy.network_mode for policy in policies)}
    own = [verifier.environment for verifier in phases if isinstance(verifier, VerifierConfig)]
    modes_elsewhere = {each.resolve_baseline().network_mode for each in own if each is not None}
    return (
        has_services(task, path)
        or len(modes) > 1  # ours cannot change its network between phases
        or NetworkMode.ALLOWLIST in modes | modes_elsewhere
        or bool(environment.gpus)
        or environment.tpu is not None
        or environment.os is TaskOS.WINDOWS
    )
