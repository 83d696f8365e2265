"""The Harbor configuration of one trial. It is written to disk: nothing secret goes in."""

from pathlib import Path
from typing import Any

from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TrialConfig, VerifierConfig
from harbor.models.trial.config import TaskConfig as TaskSource

from harbor_backend.agents.native import native_config
from harbor_backend.compose import write_overlay
from harbor_backend.environments.choose import OURS, environment_name, is_ours
from harbor_backend.phases import GRACE_SEC
from harbor_backend.staging import StagedTask
from harbor_backend.trials import TrialRecord
from osmosis_ai.rollout.container.files import CHANNEL_DIR, RUNTIME_DIR
from sandbox_images import BASE_IMAGE

_WORKFLOW_AGENT = "harbor_backend.agents.workflow:WorkflowAgent"
_GRADER_VERIFIER = "harbor_backend.verifier:GraderVerifier"
# Harbor's own deadlines are a backstop behind the execution core's.
_BACKSTOP_SEC = GRACE_SEC + 60.0
_UNBOUNDED_SEC = 7 * 24 * 3600.0


def environment_for(
    base: EnvironmentConfig,
    record: TrialRecord,
    staged: StagedTask,
    runtime_dir: Path,
    channel_dir: Path | None,
) -> EnvironmentConfig:
    """Complete an environment's configuration with what belongs to this rollout.

    Ours takes the runtime as an argument; Harbor's Docker environment gets it,
    and the directory of the gateway's socket, as mounts. Any other of Harbor's
    has the runtime uploaded.

    Raises:
        ValueError: a model is called from inside an environment that has no way to it.
    """
    if record.remote is not None:
        return record.remote.environment(base, record, staged, runtime_dir)
    if is_ours(base):
        kwargs = {
            "runtime_dir": str(runtime_dir),
            "trial_key": record.key,
            "rollout_id": record.request.id,
        }
        return base.model_copy(update={"kwargs": {**base.kwargs, **kwargs}})
    if base.type is None or base.type.value != "docker":
        if record.endpoint is not None and record.program.runs_inside:
            raise ValueError(
                f"environment_config={environment_name(base)!r} has no way to the gateway, and the "
                "agent runs inside: use Docker, SkyPilot or SkyDocker, an agent that calls its "
                "model from this process ('terminus-2'), or no chat_completions_url"
            )
        record.runtime_to_upload = runtime_dir if record.program.needs_runtime else None
        return base
    mounts: list[Any] = [*(base.mounts or []), _read_only(runtime_dir, RUNTIME_DIR)]
    if channel_dir is not None:
        mounts.append(_read_only(channel_dir, CHANNEL_DIR))
    overlay = write_overlay(
        staged.path / "environment", staged.path.parent / "overlay.yaml", record.request.id
    )
    return base.model_copy(
        update={"mounts": mounts, "extra_docker_compose": [*base.extra_docker_compose, overlay]}
    )


def agent_for(
    record: TrialRecord, native_kwargs: dict[str, Any], model_name: str, setup_sec: float | None
) -> AgentConfig:
    """The workflow as a Harbor agent, or the native agent.

    Raises:
        ValueError: a native agent needs a model, and the rollout has no chat URL.
    """
    native = record.program.native_agent
    if native is not None:
        return native_config(record, native, native_kwargs, model_name, setup_sec)
    deadline = record.agent_timeout_sec
    return AgentConfig(
        import_path=_WORKFLOW_AGENT,
        override_timeout_sec=(_UNBOUNDED_SEC if deadline is None else deadline + _BACKSTOP_SEC),
        override_setup_timeout_sec=setup_sec,
        kwargs={"trial_key": record.key},
    )


def verifier_for(
    record: TrialRecord, staged: StagedTask, grader_environment: EnvironmentConfig, *, shared: bool
) -> VerifierConfig:
    """The task's own tests where it has them, else the SDK grader, else none."""
    request = record.request
    deadline = request.grader_timeout_sec
    if not request.grade or (not staged.has_tests and not record.program.has_grader):
        return VerifierConfig(disable=True)
    if staged.has_tests:
        return VerifierConfig(override_timeout_sec=deadline)
    return VerifierConfig(
        import_path=_GRADER_VERIFIER,
        override_timeout_sec=(_UNBOUNDED_SEC if deadline is None else deadline + _BACKSTOP_SEC),
        kwargs={
            "trial_key": record.key,
            "shared": shared,
            "environment_config": grader_environment.model_dump(mode="json"),
        },
    )


def trial_config(
    name: str,
    trials_dir: Path,
    staged: StagedTask,
    agent: AgentConfig,
    environment: EnvironmentConfig,
    verifier: VerifierConfig,
) -> TrialConfig:
    """Put the parts together; limits on time come from them alone."""
    return TrialConfig(
        task=TaskSource(path=staged.path),
        trial_name=name,
        trials_dir=trials_dir,
        agent=agent,
        environment=environment,
        verifier=verifier,
    )


def _read_only(source: Path, target: str) -> dict[str, Any]:
    return {"type": "bind", "source": str(source), "target": target, "read_only": True}


def grader_environment_for(
    base: EnvironmentConfig,
    environment: EnvironmentConfig,
    record: TrialRecord,
    runtime_dir: Path,
    *,
    harbors_own: bool,
) -> EnvironmentConfig:
    """Where an SDK grader runs: one container of ours, also beside a compose task.

    ``harbors_own`` keeps to Harbor's Docker environment because the caller
    forced it. The agent's socket directory is not mounted there.
    """
    if base.type is None or base.type.value != "docker":
        return environment
    if harbors_own:
        mounts = [mount for mount in environment.mounts or [] if mount["target"] != CHANNEL_DIR]
        return environment.model_copy(update={"mounts": mounts})
    kwargs = {
        "runtime_dir": str(runtime_dir),
        "trial_key": record.key,
        "rollout_id": record.request.id,
        "fallback_image": BASE_IMAGE,
    }
    return EnvironmentConfig(import_path=OURS, delete=base.delete, kwargs=kwargs)
