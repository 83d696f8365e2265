"""Every documented name, where users import it from."""

import importlib
import subprocess
import sys

import pytest

import osmosis_ai.rollout as rollout

LATEST = [
    "AgentWorkflow",
    "AgentWorkflowConfig",
    "AgentWorkflowContext",
    "AgentWorkflowOutput",
    "BaseConfig",
    "ConcurrencyConfig",
    "ExecutionBackend",
    "ExecutionOutcome",
    "ExecutionRequest",
    "ExecutionResult",
    "Grader",
    "GraderConfig",
    "GraderContext",
    "LocalBackend",
    "MessageDict",
    "RolloutContext",
    "RolloutErrorCategory",
    "RolloutInitRequest",
    "RolloutInitResponse",
    "RolloutResultResponse",
    "RolloutSample",
    "RolloutStatus",
    "SampleSource",
    "get_rollout_context",
]
FIRST = [
    "GraderCompleteRequest",
    "GraderInitRequest",
    "GraderInitResponse",
    "GraderStatus",
    "RolloutCompleteRequest",
]
PATHS = {
    "osmosis_ai.rollout.agent_workflow": "AgentWorkflow",
    "osmosis_ai.rollout.grader": "Grader",
    "osmosis_ai.rollout.context": (
        "SampleSource RolloutContext RolloutProgress AgentWorkflowContext GraderContext "
        "get_rollout_context rollout_contextvar CHAT_COMPLETIONS_URL_ENV API_KEY_ENV "
        "ROLLOUT_ID_ENV"
    ),
    "osmosis_ai.rollout.types": (
        "Messages MessageDict CancelRolloutsRequest CancelRolloutsResponse POLLING_LEASE_HEADER "
        "RolloutStatusResponse RolloutSample GraderStatus"
    ),
    "osmosis_ai.rollout.types.output": "AgentWorkflowOutput Messages coerce_output",
    "osmosis_ai.rollout.backend": "ExecutionBackend LocalBackend",
    "osmosis_ai.rollout.backend.base": "ExecutionBackend ResultCallback",
    "osmosis_ai.rollout.backend.local": "LocalBackend",
    "osmosis_ai.rollout.client": (
        "RolloutClient RolloutHandle RolloutProtocolError RolloutAdmissionTimeoutError"
    ),
    "osmosis_ai.rollout.server": "ControllerAuth create_rollout_server",
}


@pytest.mark.parametrize("name", [*LATEST, *FIRST])
def test_exported_by_both_generations(name: str) -> None:
    assert name in rollout.__all__
    assert getattr(rollout, name) is not None


def test_nothing_else_is_exported() -> None:
    assert sorted(rollout.__all__) == sorted([*LATEST, *FIRST])


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module in PATHS for name in PATHS[module].split()]
)
def test_documented_paths(module: str, name: str) -> None:
    assert hasattr(importlib.import_module(module), name)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = rollout.Nothing


def test_base_import_pulls_in_no_backend_and_no_extra() -> None:
    heavy = ["local_backend", "harbor_backend", "harbor", "fastapi", "litellm", "aiohttp", "docker"]
    code = (
        "import sys, osmosis_ai.rollout, osmosis_ai.rollout.client\n"
        "from osmosis_ai.rollout.server import ControllerAuth\n"
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
