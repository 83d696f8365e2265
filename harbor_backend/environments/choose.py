"""Which environment runs a trial: ours, or Harbor's own."""

from pathlib import Path

from harbor.models.environment_type import EnvironmentType
from harbor.models.task.config import NetworkMode, TaskConfig, TaskOS
from harbor.models.trial.config import EnvironmentConfig

OURS = "harbor_backend.environments.docker:DockerEnvironment"


def choose_environment(
    forced: EnvironmentConfig | None, task: TaskConfig, environment_dir: Path
) -> EnvironmentConfig:
    """Return the environment of a trial, before anything rollout-specific is added.

    A given configuration is kept as it is, so it forces either. Otherwise our
    own environment runs every task that needs one container only; several
    services, an allowlist, an accelerator or Windows go to Harbor's Docker
    environment unmodified.
    """
    if forced is not None:
        return forced.model_copy(deep=True)
    if needs_harbor(task, environment_dir):
        return EnvironmentConfig(type=EnvironmentType.DOCKER)
    return EnvironmentConfig(import_path=OURS)


def is_ours(config: EnvironmentConfig) -> bool:
    """Whether a configuration means our own environment."""
    return config.import_path == OURS


def needs_harbor(task: TaskConfig, environment_dir: Path) -> bool:
    """Whether a task asks for what our own environment does not do."""
    environment = task.environment
    phases = [task.agent, task.verifier, *(task.steps or [])]
    modes = {environment.network_mode, *(getattr(phase, "network_mode", None) for phase in phases)}
    return (
        (environment_dir / "docker-compose.yaml").exists()
        or NetworkMode.ALLOWLIST in modes
        or bool(environment.gpus)
        or environment.tpu is not None
        or environment.os is TaskOS.WINDOWS
    )
