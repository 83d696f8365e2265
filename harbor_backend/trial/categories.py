"""Whose fault an exception was that ended a trial, by what Harbor reports of it."""

from harbor.agents.installed.base import NonZeroAgentExitCodeError
from harbor.models.trial.result import ExceptionInfo, TimingInfo, TrialResult

from harbor_backend.errors import category_named
from harbor_backend.trial.images import build_category
from osmosis_ai.rollout.types.status import RolloutErrorCategory

_TIMEOUT = RolloutErrorCategory.TIMEOUT
_INFRASTRUCTURE = RolloutErrorCategory.INFRASTRUCTURE_ERROR
_VALIDATION = RolloutErrorCategory.VALIDATION_ERROR
_AGENT = RolloutErrorCategory.AGENT_ERROR
_HTTP = RolloutErrorCategory.HTTP_ERROR

HARBORS = {
    "AgentTimeoutError": _TIMEOUT,
    "VerifierTimeoutError": _TIMEOUT,
    "DeadlineExceededError": _TIMEOUT,
    # Harbor's own table says of these that the sandbox failed.
    "AgentSetupTimeoutError": _INFRASTRUCTURE,
    "EnvironmentStartTimeoutError": _INFRASTRUCTURE,
    "HealthcheckError": _INFRASTRUCTURE,
    "SandboxLikelyOutOfMemoryError": _INFRASTRUCTURE,
    "MemoryLimitExceededError": _INFRASTRUCTURE,
    "SSHAccessError": _INFRASTRUCTURE,
    "GKEExecStreamClosedError": _INFRASTRUCTURE,
    "GKEPodNotFoundError": _INFRASTRUCTURE,
    "RuntimeRequestError": _INFRASTRUCTURE,
    "AddTestsDirError": _INFRASTRUCTURE,
    "DownloadVerifierDirError": _INFRASTRUCTURE,
    "APIError": _INFRASTRUCTURE,
    "DockerException": _INFRASTRUCTURE,
    "SandboxBuildFailedError": _VALIDATION,
    "RewardFileNotFoundError": _VALIDATION,
    "RewardFileEmptyError": _VALIDATION,
    "VerifierOutputParseError": _VALIDATION,
    "FileNotFoundError": _VALIDATION,
    "ValueError": _VALIDATION,
    "ValidationError": _VALIDATION,
    "TypeError": _VALIDATION,
    "ImportError": _VALIDATION,
    # And of these that the model's provider did: its reward would say nothing of the agent.
    "ApiError": _HTTP,
    "ApiRateLimitError": _HTTP,
    "ApiUsageLimitError": _HTTP,
    "ApiInternalServerError": _HTTP,
    "ApiOverloadedError": _HTTP,
    "ApiConnectionClosedError": _HTTP,
    "ApiConnectionError": _HTTP,
    "ApiResponseStalledError": _HTTP,
    "ApiProviderResourceNotFoundError": _HTTP,
    "UnknownApiError": _HTTP,
    "NetworkConnectionError": _HTTP,
    "AgentAuthenticationError": _HTTP,
    "ModelNotFoundError": _HTTP,
    "UnsupportedModelParametersError": _HTTP,
    "APIConnectionError": _HTTP,
    "APIResponseValidationError": _HTTP,
    "AuthenticationError": _HTTP,
    "BadRequestError": _HTTP,
    "BudgetExceededError": _HTTP,
    "InternalServerError": _HTTP,
    "NotFoundError": _HTTP,
    "PermissionDeniedError": _HTTP,
    "RateLimitError": _HTTP,
    "ServiceUnavailableError": _HTTP,
    "Timeout": _HTTP,
    "UnprocessableEntityError": _HTTP,
    "UnsupportedParamsError": _HTTP,
}
"""Exceptions that are not ours, wherever they come from; ours know it themselves."""

_WORKFLOW_FAILED = NonZeroAgentExitCodeError.__name__
_OF_REWARDS = {
    "IsADirectoryError",
    "NotADirectoryError",
    "OverflowError",
    "RecursionError",
    "UnicodeDecodeError",
}
"""What reading a reward raises that is no file, no text, or beyond JSON's depth."""

_OF_IMAGES = {"SandboxBuildFailedError"}
_BEFORE = {"setup", "environment_setup"}
"""The phases before the agent's; Harbor's own Docker environment builds in them, and says
``RuntimeError`` of an image that does not build."""


def category_of(
    exception_type: str, phase: str, *, is_workflow: bool = False, message: str = ""
) -> RolloutErrorCategory:
    """The category of an exception by its class's name and the phase that it ended.

    With ``is_workflow`` the agent is ours, which reports what user code does as a
    result, and ends with ``NonZeroAgentExitCodeError`` where its work is graded all the
    same: whatever else it raises is the sandbox's fault, never the agent's. Nor is anything
    that ends the verifier.
    Of an image that was not built, the ``message`` tells the task's fault from the registry's.
    """
    known = category_named(exception_type) or HARBORS.get(exception_type)
    if exception_type in _OF_IMAGES or (exception_type == "RuntimeError" and phase in _BEFORE):
        known = build_category(message) or known
    if known is not None:
        return known
    if phase == "verifier":
        return _VALIDATION if exception_type in _OF_REWARDS else _INFRASTRUCTURE
    of_sandbox = is_workflow and exception_type != _WORKFLOW_FAILED
    return _INFRASTRUCTURE if of_sandbox or phase in _BEFORE else _AGENT


def phase_of(trial: TrialResult, error: ExceptionInfo | None = None) -> str:
    """Name the phase that an exception ended, or the last one that began."""
    if trial.verifier is not None and (error is None or _began_before(trial.verifier, error)):
        return "verifier"
    if error is not None and error in verifiers_errors(trial):  # of one of the steps
        return "verifier"
    if trial.agent_execution is not None or trial.step_results:
        return "agent"
    if trial.agent_setup is not None:
        return "agent_setup"
    return "environment_setup" if trial.environment_setup is not None else "setup"


def agents_error(trial: TrialResult) -> ExceptionInfo | None:
    """What ended the agent's phase, or kept it from its beginning; of steps, the first."""
    error = trial.exception_info
    if error is not None:
        return None if phase_of(trial, error) == "verifier" else error
    for step in trial.step_results or []:
        error, verifier = step.exception_info, step.verifier
        of_verifier = error is None or (verifier is not None and _began_before(verifier, error))
        if step.agent_execution is not None and not of_verifier:
            return error
    return None


def verifiers_errors(trial: TrialResult) -> list[ExceptionInfo]:
    """What ended the verifier, or those of the steps."""
    phases = [(trial.exception_info, trial.verifier)]
    phases += [(step.exception_info, step.verifier) for step in trial.step_results or []]
    return [
        error
        for error, timing in phases
        if error is not None and timing is not None and _began_before(timing, error)
    ]


def _began_before(timing: TimingInfo, error: ExceptionInfo) -> bool:
    return timing.started_at is not None and (
        timing.started_at.timestamp() <= error.occurred_at.timestamp()
    )
