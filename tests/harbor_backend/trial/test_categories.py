"""Whose fault it was: every exception that can end a trial, in every phase that it can end."""

import importlib
import itertools
import pkgutil
from pathlib import Path
from typing import Any

import pytest

import harbor_backend
from harbor_backend.errors import HarborBackendError, category_named
from harbor_backend.trial.categories import HARBORS, category_of, phase_of
from osmosis_ai.rollout.types.status import RolloutErrorCategory
from tests.harbor_backend.reports import PHASES, error, reached, timing, trial_result

AGENT = RolloutErrorCategory.AGENT_ERROR
INFRASTRUCTURE = RolloutErrorCategory.INFRASTRUCTURE_ERROR
HTTP = RolloutErrorCategory.HTTP_ERROR
TIMEOUT = RolloutErrorCategory.TIMEOUT
VALIDATION = RolloutErrorCategory.VALIDATION_ERROR

OURS: dict[str, tuple[RolloutErrorCategory, str | None]] = {
    "ComposeFileError": (VALIDATION, None),
    "DockerCommandError": (INFRASTRUCTURE, None),
    "EngineError": (INFRASTRUCTURE, None),
    "HostLostError": (INFRASTRUCTURE, None),
    "HostRefusedError": (INFRASTRUCTURE, None),
    "ModelRouteError": (INFRASTRUCTURE, None),
    "ModelUnreachableError": (INFRASTRUCTURE, None),
    "NoHostError": (INFRASTRUCTURE, None),
    "SandboxCreationError": (INFRASTRUCTURE, None),
    "SandboxLostError": (INFRASTRUCTURE, None),
    "SandboxStartError": (INFRASTRUCTURE, "environment_setup"),
    "SkypilotError": (INFRASTRUCTURE, None),
    "SkypilotUnavailableError": (INFRASTRUCTURE, None),
    "TaskError": (VALIDATION, "setup"),
    "TaskFetchError": (INFRASTRUCTURE, "setup"),
    "WorkflowFailedError": (AGENT, "agent"),
}
"""Our exceptions, whose category is the same wherever they end a trial, and their own phase."""

PROVIDERS = [
    "APIConnectionError",
    "APIResponseValidationError",
    "AgentAuthenticationError",
    "ApiConnectionClosedError",
    "ApiConnectionError",
    "ApiError",
    "ApiInternalServerError",
    "ApiOverloadedError",
    "ApiProviderResourceNotFoundError",
    "ApiRateLimitError",
    "ApiResponseStalledError",
    "ApiUsageLimitError",
    "AuthenticationError",
    "BadRequestError",
    "BudgetExceededError",
    "InternalServerError",
    "ModelNotFoundError",
    "NetworkConnectionError",
    "NotFoundError",
    "PermissionDeniedError",
    "RateLimitError",
    "ServiceUnavailableError",
    "Timeout",
    "UnknownApiError",
    "UnprocessableEntityError",
    "UnsupportedModelParametersError",
    "UnsupportedParamsError",
]
"""What the provider of an agent's model raises, by way of the agent or of its client."""

OTHERS = {
    "AgentTimeoutError": TIMEOUT,
    "AgentSetupTimeoutError": INFRASTRUCTURE,
    "SandboxLikelyOutOfMemoryError": INFRASTRUCTURE,
    "MemoryLimitExceededError": INFRASTRUCTURE,
    "SSHAccessError": INFRASTRUCTURE,
    "GKEExecStreamClosedError": INFRASTRUCTURE,
    "GKEPodNotFoundError": INFRASTRUCTURE,
    "RuntimeRequestError": INFRASTRUCTURE,
    "VerifierTimeoutError": TIMEOUT,
    "DeadlineExceededError": TIMEOUT,
    "EnvironmentStartTimeoutError": INFRASTRUCTURE,
    "HealthcheckError": INFRASTRUCTURE,
    "APIError": INFRASTRUCTURE,
    "DockerException": INFRASTRUCTURE,
    "AddTestsDirError": INFRASTRUCTURE,
    "DownloadVerifierDirError": INFRASTRUCTURE,
    "SandboxBuildFailedError": VALIDATION,
    "RewardFileNotFoundError": VALIDATION,
    "RewardFileEmptyError": VALIDATION,
    "VerifierOutputParseError": VALIDATION,
    "FileNotFoundError": VALIDATION,
    "ValueError": VALIDATION,
    "ValidationError": VALIDATION,
    "TypeError": VALIDATION,
    "ImportError": VALIDATION,
    **dict.fromkeys(PROVIDERS, HTTP),
}
"""Exceptions of Harbor, of Docker's client and of Python that say whose fault they are."""

UNKNOWN = [
    "BrokenPipeError",
    "CancelledError",
    "ConnectionError",
    "ConnectionResetError",
    "ExceptionGroup",
    "KeyError",
    "OSError",
    "PermissionError",
    "RuntimeError",
    "TimeoutError",
    "AnExceptionThatNobodyKnows",
]
"""Exceptions that mean something else in every place that raises them."""

BY_PHASE = {
    # phase: (of a workflow's trial, of a native agent's)
    "setup": (INFRASTRUCTURE, INFRASTRUCTURE),
    "environment_setup": (INFRASTRUCTURE, INFRASTRUCTURE),
    "agent_setup": (INFRASTRUCTURE, AGENT),
    "agent": (INFRASTRUCTURE, AGENT),
    "verifier": (INFRASTRUCTURE, INFRASTRUCTURE),
}


def defined_here(kind: type[HarborBackendError]) -> set[type[HarborBackendError]]:
    """A class's subclasses that the package itself defines, at any depth."""
    own = {each for each in kind.__subclasses__() if each.__module__.startswith("harbor_backend.")}
    return own.union(*(defined_here(each) for each in own))


def ours() -> dict[str, type[HarborBackendError]]:
    """All exceptions of the package by name; each of its modules is imported for that."""
    for module in pkgutil.walk_packages(harbor_backend.__path__, "harbor_backend."):
        importlib.import_module(module.name)
    return {each.__name__: each for each in defined_here(HarborBackendError)}


def test_the_table_names_every_exception_of_ours() -> None:
    assert {name: (kind.category, kind.phase) for name, kind in ours().items()} == OURS


def test_the_table_names_every_known_exception_of_others() -> None:
    assert HARBORS == OTHERS
    assert not set(OTHERS) & set(OURS)


def categories(name: str) -> dict[str, tuple[RolloutErrorCategory, RolloutErrorCategory]]:
    """An exception's category by phase: in a workflow's trial, and in a native agent's."""
    return {
        phase: (category_of(name, phase, is_workflow=True), category_of(name, phase))
        for phase in PHASES
    }


@pytest.mark.parametrize("name", [*OURS, *OTHERS])
def test_a_known_exception_is_the_same_fault_in_every_phase(name: str) -> None:
    expected = OURS[name][0] if name in OURS else OTHERS[name]
    assert categories(name) == dict.fromkeys(PHASES, (expected, expected))


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_exception_is_judged_by_where_it_came_from(name: str) -> None:
    assert categories(name) == BY_PHASE


def test_an_exit_code_is_the_agents_in_its_own_phase() -> None:
    """Also a workflow's, which ends so where its work is graded all the same."""
    expected = {**BY_PHASE, "agent": (AGENT, AGENT), "agent_setup": (AGENT, AGENT)}
    assert categories("NonZeroAgentExitCodeError") == expected


@pytest.mark.parametrize(
    "exc",
    [
        IsADirectoryError(),
        NotADirectoryError(),
        RecursionError(),
        OverflowError(),
        UnicodeDecodeError("utf-8", b"", 0, 1, ""),
    ],
)
def test_a_reward_that_cannot_be_read_is_the_tasks_fault(exc: Exception) -> None:
    name = type(exc).__name__
    assert categories(name) == {**BY_PHASE, "verifier": (VALIDATION, VALIDATION)}


def test_what_fails_beside_the_agent_is_never_the_agents_fault() -> None:
    """A relay, a socket, an engine, a host: only what the workflow itself did is."""
    blamed = {name for name in ours() if AGENT in itertools.chain(*categories(name).values())}
    assert blamed == {"WorkflowFailedError"}


@pytest.mark.parametrize("name", ["AddTestsDirError", "DownloadVerifierDirError"])
def test_a_sandbox_lost_while_the_tests_are_carried_is_not_the_agents_fault(
    name: str,
) -> None:
    assert categories(name)["verifier"] == (INFRASTRUCTURE, INFRASTRUCTURE)


def test_a_class_of_another_package_is_not_ours() -> None:
    assert category_named("RuntimeError") is None
    assert category_named("HarborBackendError") is None


def test_two_exceptions_cannot_share_a_name() -> None:
    with pytest.raises(TypeError, match="two exceptions are called TaskError"):
        type("TaskError", (HarborBackendError,), {})
    assert category_named("TaskError") is VALIDATION


TIMINGS = ("environment_setup", "agent_setup", "agent_execution", "verifier")
LAST = dict(zip(TIMINGS, PHASES[1:], strict=True))


@pytest.mark.parametrize("there", list(itertools.product([False, True], repeat=len(TIMINGS))))
def test_the_last_phase_that_began_is_the_one_that_ended(
    there: tuple[bool, ...], tmp_path: Path
) -> None:
    """Whatever of the earlier ones Harbor timed."""
    present = [name for name, is_there in zip(TIMINGS, there, strict=True) if is_there]
    timings: dict[str, Any] = {name: timing(0) for name in present}
    result = trial_result(tmp_path, **timings)
    expected = LAST[present[-1]] if present else "setup"
    assert phase_of(result) == expected
    assert phase_of(result, error("KeyError", seconds=1)) == expected


VERIFYING: dict[str, tuple[dict[str, Any], float | None, str]] = {
    # what Harbor timed, seconds of the exception, phase
    "no exception": (reached("verifier"), None, "verifier"),
    "an exception of the verifier": (reached("verifier"), 31, "verifier"),
    "an exception as the verifier begins": (reached("verifier"), 30, "verifier"),
    "the agent's, and Harbor verified all the same": (reached("verifier"), 29, "agent"),
    "that of the agent's setup": (
        {**reached("verifier"), "agent_execution": None},
        5,
        "agent_setup",
    ),
    "one that came before a verifier without a beginning": (
        {**reached("agent"), "verifier": timing()},
        100,
        "agent",
    ),
    "no exception, and a verifier without a beginning": (
        {**reached("agent"), "verifier": timing()},
        None,
        "verifier",
    ),
    "steps, which are timed one by one": (
        {**reached("agent_setup"), "step_results": [{"step_name": "one"}]},
        100,
        "agent",
    ),
    "no step yet": ({**reached("agent_setup"), "step_results": []}, 100, "agent_setup"),
}


@pytest.mark.parametrize("case", VERIFYING)
def test_an_exception_belongs_to_the_phase_in_which_it_came(case: str, tmp_path: Path) -> None:
    fields, seconds, expected = VERIFYING[case]
    raised = None if seconds is None else error("KeyError", seconds=seconds)
    assert phase_of(trial_result(tmp_path, **fields), raised) == expected
