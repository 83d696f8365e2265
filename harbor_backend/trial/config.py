"""The Harbor configuration of one trial. It is written to disk: nothing secret goes in."""

from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TrialConfig, VerifierConfig
from harbor.models.trial.config import TaskConfig as TaskSource

from harbor_backend.core.phases import GRACE_SEC
from harbor_backend.core.trial import Trial
from harbor_backend.native.agent import native_config
from harbor_backend.places.place import Environments

_WORKFLOW_AGENT = "harbor_backend.trial.workflow_agent:WorkflowAgent"
_TASK_VERIFIER = "harbor_backend.trial.task_verifier:TaskVerifier"
_GRADER_VERIFIER = "harbor_backend.trial.grader_verifier:GraderVerifier"
# Harbor's own deadlines are a backstop behind the execution core's.
_BACKSTOP_SEC = GRACE_SEC + 60.0
_UNBOUNDED_SEC = 7 * 24 * 3600.0


def trial_config(trial: Trial, environments: Environments) -> TrialConfig:
    """How Harbor runs a trial; its limits on time come from here alone.

    Raises:
        ValueError: a native agent needs a model, and the rollout has no chat URL.
    """
    spec = trial.spec
    return TrialConfig(
        task=TaskSource(path=spec.task.path),
        trial_name=spec.name,
        trials_dir=spec.trials_dir,
        agent=_agent(trial),
        environment=environments.agent,
        verifier=_verifier(trial, environments.grader),
    )


def _agent(trial: Trial) -> AgentConfig:
    """The workflow as a Harbor agent, or the native agent."""
    if trial.spec.program.native_agent is not None:
        return native_config(trial, trial.spec.program.native_agent)
    return AgentConfig(
        import_path=_WORKFLOW_AGENT,
        override_timeout_sec=_backstop(trial.spec.agent_timeout_sec),
        override_setup_timeout_sec=trial.spec.options.setup_timeout_sec,
        kwargs={"trial_key": trial.key},
    )


def _verifier(trial: Trial, grader_environment: EnvironmentConfig) -> VerifierConfig:
    """The task's own tests where it has them, else the SDK grader, else none."""
    spec = trial.spec
    deadline = spec.request.grader_timeout_sec
    if not spec.has_verifier:
        return VerifierConfig(disable=True)
    if not spec.is_graded_by_sdk:
        return VerifierConfig(
            import_path=_TASK_VERIFIER,
            override_timeout_sec=deadline,
            kwargs={"trial_key": trial.key},
        )
    return VerifierConfig(
        import_path=_GRADER_VERIFIER,
        override_timeout_sec=_backstop(deadline),
        kwargs={
            "trial_key": trial.key,
            "shared": spec.shared_grading,
            "environment_config": grader_environment.model_dump(mode="json"),
        },
    )


def _backstop(deadline: float | None) -> float:
    return _UNBOUNDED_SEC if deadline is None else deadline + _BACKSTOP_SEC
