"""What a SkyPilot sandbox cannot do, told before one is created."""

import re
from dataclasses import dataclass
from pathlib import Path

from harbor.models.task.config import NetworkMode, TaskConfig, TaskOS, VerifierConfig

from harbor_backend.places.harbor.compose import has_compose
from harbor_backend.places.skypilot.lifetime import check_budget
from harbor_backend.places.skypilot.settings import REGISTRY_ENV, SkypilotSettings

_OF_ENGINES = re.compile(
    r"^[ \t]*(ENTRYPOINT|HEALTHCHECK)[ \t]+(?!NONE\b|\[[ \t]*\])", re.IGNORECASE | re.MULTILINE
)
_NETWORK_REMEDY = 'set network_mode = "public" in [environment] of its task.toml'


@dataclass(frozen=True)
class Demand:
    """What a rollout asks of its sandboxes beside its task: who calls a model from inside."""

    agent_timeout_sec: float | None
    grader_timeout_sec: float | None
    agent_calls_model: bool
    grader_calls_judge: bool


def check_task_fits(
    name: str, task: TaskConfig, directory: Path, settings: SkypilotSettings, demand: Demand
) -> None:
    """Pass when a sandbox can do what a task, and a rollout of it, ask for.

    Raises:
        ValueError: it cannot; the text names the task, what it asks for, and the remedy.
    """
    environment = task.environment
    if has_compose(directory):
        raise ValueError(
            f"Task {name} has several services, and a SkyPilot sandbox is one container: run it "
            "on Docker"
        )
    if environment.os is TaskOS.WINDOWS:
        raise ValueError(f"Task {name} is for Windows, and SkyPilot sandboxes run Linux")
    if environment.gpus or environment.tpu is not None:
        raise ValueError(
            f"Task {name} asks for an accelerator, which SkyPilot sandboxes cannot allocate: "
            "remove gpus/tpu from [environment] of its task.toml, or run it elsewhere"
        )
    check_image_source(name, task, directory, settings)
    _check_network(name, task, settings, demand)
    check_budget(demand.agent_timeout_sec, f"The agent's deadline of task {name}")
    check_budget(demand.grader_timeout_sec, f"The grader's deadline of task {name}")


def left_to_platform(directory: Path) -> str | None:
    """What a note says of a task whose Dockerfile asks for what only an engine does."""
    dockerfile = directory / "Dockerfile"
    text = dockerfile.read_text(errors="replace") if dockerfile.is_file() else ""
    asked = sorted({word.upper() for word in _OF_ENGINES.findall(text)})
    if not asked:
        return None
    return (
        f"The Dockerfile has {' and '.join(asked)}, and what of an image's own program a SkyPilot "
        "sandbox runs is the platform's: nothing of it is waited for. Start services in the "
        "task's own scripts or with [environment.healthcheck], or run it on Docker"
    )


def check_image_source(
    name: str, task: TaskConfig, directory: Path, settings: SkypilotSettings
) -> None:
    """Pass when there is an image: of the pool, of the task, or built for a registry.

    Raises:
        ValueError: there is none; the text says what to set.
    """
    if settings.pool or task.environment.docker_image:
        return
    if settings.registry is None:
        raise ValueError(
            f"Task {name} has no image that a SkyPilot sandbox could start from. Set one of: "
            "kwargs={'pool': …} (a warm pool), docker_image in [environment] of its task.toml, "
            f"kwargs={{'registry': …}} (or {REGISTRY_ENV}), where its Dockerfile's image is pushed"
        )
    if not (directory / "Dockerfile").is_file():
        raise ValueError(
            f"Task {name} has neither a Dockerfile in {directory.name}/ nor a docker_image, so "
            "there is nothing to build for the registry: add one of them, or use a pool"
        )


def _check_network(name: str, task: TaskConfig, settings: SkypilotSettings, demand: Demand) -> None:
    baseline = task.environment.resolve_baseline().network_mode
    modes = {baseline, *_phase_modes(task)}
    if NetworkMode.ALLOWLIST in modes:
        raise ValueError(
            f"Task {name} has an allowlist of hosts, and SkyPilot sandboxes know addresses only: "
            f"{_NETWORK_REMEDY}, or run it on Docker"
        )
    if len(modes) > 1:
        raise ValueError(
            f"Task {name} changes its network between phases, and a SkyPilot sandbox keeps the "
            "one it was created with: give all phases the same network_mode"
        )
    if baseline is not NetworkMode.NO_NETWORK:
        return
    if settings.pool is not None:
        raise ValueError(
            f"Task {name} wants no network (which is also a template's default), and a pool's "
            f"sandboxes have the network that the pool was made with: {_NETWORK_REMEDY}, or leave "
            "the pool out"
        )
    if demand.agent_calls_model or demand.grader_calls_judge:
        who = "agent" if demand.agent_calls_model else "grader"
        raise ValueError(
            f"Task {name} has no network (which is also a template's default), and its {who} calls "
            f"a model from inside the sandbox: {_NETWORK_REMEDY}, or run it on Docker, where a "
            "socket leads to the model"
        )


def _phase_modes(task: TaskConfig) -> set[NetworkMode]:
    phases = [task.agent, task.verifier]
    for step in task.steps or []:
        phases += [step.agent, step.verifier]
    modes = {policy.network_mode for phase in phases if (policy := phase.explicit_phase_policy())}
    own = [phase.environment for phase in phases if isinstance(phase, VerifierConfig)]
    return modes | {
        NetworkMode.ALLOWLIST
        for each in own
        if each is not None and each.resolve_baseline().network_mode is NetworkMode.ALLOWLIST
    }
