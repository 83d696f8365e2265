"""Which agents' exceptions are graded all the same, against Harbor's own table."""

import pytest
from harbor.agents.installed.base import (
    AgentAuthenticationError,
    ApiRateLimitError,
    NonZeroAgentExitCodeError,
)
from harbor.llms.base import ContextLengthExceededError
from harbor.models.trial.error_policy import ERROR_POLICIES

from harbor_backend.core.policy import as_harbor_grades, graded_failure, is_graded, is_the_agents
from harbor_backend.trial.categories import category_of
from osmosis_ai.rollout import ExecutionResult, RolloutStatus
from osmosis_ai.rollout.types.status import RolloutErrorCategory

AGENTS = {
    RolloutErrorCategory.TIMEOUT,
    RolloutErrorCategory.AGENT_ERROR,
    RolloutErrorCategory.VALIDATION_ERROR,
}
EXHAUSTED = [
    "AgentTimeoutError",
    "ContextLengthExceededError",
    "ContextWindowExceededError",
    "OutputLengthExceededError",
    "OutputTokenExceededError",
]
REFUSED = ["AgentSafetyRefusalError", "ContentPolicyViolationError"]
NO_FAULT_OF_A_TRIAL = {
    "CancelledError",
    "DspyImportError",
    "MissingExtraError",
    "RegradeError",
    "SandboxBuildFailedError",
    "ServiceOperationsUnsupportedError",
    "VercelScopeError",
}
"""What Harbor's table has besides: a cancellation, its own commands, and an image that may be
the task's fault; no agent ran in one that was not built."""


@pytest.mark.parametrize("name", [*EXHAUSTED, *REFUSED, "NonZeroAgentExitCodeError"])
def test_the_agents_own_end_is_graded_and_its_reward_counts(name: str) -> None:
    assert is_graded(name)
    assert category_of(name, "agent") in AGENTS


@pytest.mark.parametrize("name", sorted({*ERROR_POLICIES} - NO_FAULT_OF_A_TRIAL))
def test_what_harbor_does_not_grade_is_never_an_agents_reward(name: str) -> None:
    if not is_graded(name):
        assert category_of(name, "agent").may_run_again


@pytest.mark.parametrize(
    ("exc", "graded"),
    [
        (ContextLengthExceededError("full"), True),
        (AgentAuthenticationError("no key"), False),
    ],
)
def test_an_exception_becomes_what_the_policy_makes_of_it(exc: Exception, graded: bool) -> None:
    made = as_harbor_grades(exc)
    assert type(made).__name__ == type(exc).__name__
    assert str(made) == str(exc)
    assert isinstance(made, NonZeroAgentExitCodeError) is graded


@pytest.mark.parametrize(
    "exc",
    [
        NonZeroAgentExitCodeError("exit code 1"),
        ApiRateLimitError("slow down"),
        RuntimeError("perhaps of the sandbox"),
        TimeoutError("Harbor's own"),
    ],
)
def test_others_are_left_as_they_are(exc: Exception) -> None:
    assert as_harbor_grades(exc) is exc


@pytest.mark.parametrize(
    ("category", "name"),
    [
        (RolloutErrorCategory.TIMEOUT, "AgentTimeoutError"),
        (RolloutErrorCategory.AGENT_ERROR, "NonZeroAgentExitCodeError"),
        (RolloutErrorCategory.VALIDATION_ERROR, "NonZeroAgentExitCodeError"),
    ],
)
def test_a_workflows_failure_has_harbors_name(category: RolloutErrorCategory, name: str) -> None:
    result = ExecutionResult(status=RolloutStatus.FAILURE, err_category=category)
    assert is_the_agents(result)
    made = graded_failure(result, "it broke")
    assert (type(made).__name__, str(made)) == (name, "it broke")
    assert isinstance(made, NonZeroAgentExitCodeError)
    assert not isinstance(made, TimeoutError)  # Harbor would give that another text


@pytest.mark.parametrize("category", [*{*RolloutErrorCategory} - AGENTS, None])
def test_no_other_failure_is_the_agents(category: RolloutErrorCategory | None) -> None:
    result = ExecutionResult(status=RolloutStatus.FAILURE, err_category=category)
    assert not is_the_agents(result)


def test_a_success_is_no_failure() -> None:
    noted = ExecutionResult(status=RolloutStatus.SUCCESS, err_category=RolloutErrorCategory.TIMEOUT)
    assert not is_the_agents(noted)
