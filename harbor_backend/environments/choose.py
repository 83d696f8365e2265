"""Which environment runs a trial: ours, or Harbor's own."""

from pathlib import Path
from typing import TypeGuard

from harbor.models.environment_type import EnvironmentType
from harbor.models.task.config import NetworkMode, TaskConfig, TaskOS, VerifierConfig
from harbor.models.trial.config import EnvironmentConfig

OURS = "harbor_backend.environments.docker:DockerEnvironment"
SKYPILOT = "harbor_backend.skypilot.environment:SkypilotEnvironment"
HARBORS_SKYPILOT = "harbor.environments.skypilot:SkypilotEnvironment"
SKY_DOCKER = "harbor_backend.sky_docker.environment:SkyDockerEnvironment"


def choose_environment(
    forced: EnvironmentConfig | None,
    task: TaskConfig,
    environment_dir: Path,
    *,
    keep: bool = False,
) -> EnvironmentConfig:
    """Return the environment of a trial, before anything rollout-specific is added.

    A given configuration is kept as it is, so it forces either. Otherwise our
    own environment runs every task that needs one container only; several
    services, an allowlist, phases with different networks, an accelerator or
    Windows go to Harbor's Docker environment unmodified. ``keep`` makes any of
    them leave its containers in the engine; Harbor's stops them.
    """
    if forced is not None:
        chosen = forced.model_copy(deep=True)
    elif needs_harbor(task, environment_dir):
        chosen = EnvironmentConfig(type=EnvironmentType.DOCKER)
    else:
        chosen = EnvironmentConfig(import_path=OURS)
    return _kept(chosen) if keep else chosen


def is_ours(config: EnvironmentConfig) -> bool:
    """Whether a configuration means our own environment, here or on a host of a cluster."""
    return config.import_path in {OURS, SKY_DOCKER}


def is_on_hosts(config: EnvironmentConfig | None) -> TypeGuard[EnvironmentConfig]:
    """Whether a configuration means our own environment on the hosts of a cluster."""
    return config is not None and config.import_path == SKY_DOCKER


def is_skypilot(config: EnvironmentConfig | None) -> TypeGuard[EnvironmentConfig]:
    """Whether a configuration means SkyPilot's sandboxes, which are remote."""
    return config is not None and (
        config.import_path in {SKYPILOT, HARBORS_SKYPILOT}
        or config.type is EnvironmentType.SKYPILOT
    )


def environment_name(config: EnvironmentConfig) -> str:
    """What to call an environment in reports."""
    if is_ours(config):
        return "sky-docker" if is_on_hosts(config) else "osmosis-docker"
    if is_skypilot(config):
        return "skypilot"
    return config.type.value if config.type is not None else str(config.import_path)


def has_compose(environment_dir: Path) -> bool:
    """Whether a task's environment is made of services."""
    return (environment_dir / "docker-compose.yaml").exists()


def needs_harbor(task: TaskConfig, environment_dir: Path) -> bool:
    """Whether a task asks for what our own environment does not do."""
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
        has_compose(environment_dir)
        or len(modes) > 1  # ours cannot change its network between phases
        or NetworkMode.ALLOWLIST in modes | modes_elsewhere
        or bool(environment.gpus)
        or environment.tpu is not None
        or environment.os is TaskOS.WINDOWS
    )


def _kept(config: EnvironmentConfig) -> EnvironmentConfig:
    # Without its own argument, Harbor's Docker environment removes containers in either case.
    own = {"keep_containers": True} if config.type is EnvironmentType.DOCKER else {}
    return config.model_copy(update={"delete": False, "kwargs": {**config.kwargs, **own}})
