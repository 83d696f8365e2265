"""The configuration with which Harbor runs a trial."""

from pathlib import Path
from typing import Any

import pytest
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, VerifierConfig

from harbor_backend.core.spec import AgentOptions, Model
from harbor_backend.places.place import Environments
from harbor_backend.trial.config import trial_config
from osmosis_ai.gateway import Gateway
from osmosis_ai.rollout.context import ModelEndpoint
from tests.harbor_backend.specs import living, make_spec, native_program, workflow_program

KEY = "sk-the-operators-own-key"
AGENTS = EnvironmentConfig(import_path="mine:Agents")
GRADERS = EnvironmentConfig(import_path="mine:Graders", kwargs={"role": "grader"})
ENVIRONMENTS = Environments(AGENTS, GRADERS)
FLOW, JUDGED = workflow_program(), workflow_program(grader=True)
ORACLE = native_program("oracle")
WEEK = 7 * 24 * 3600.0
TRIAL_KEY = "the trial's key"


def workflow_agent(timeout: float = WEEK, setup: float | None = None) -> AgentConfig:
    return AgentConfig(
        import_path="harbor_backend.trial.workflow_agent:WorkflowAgent",
        override_timeout_sec=timeout,
        override_setup_timeout_sec=setup,
        kwargs={"trial_key": TRIAL_KEY},
    )


AGENT_CASES: dict[str, tuple[dict[str, Any], AgentConfig]] = {
    "a workflow without a deadline": ({"program": FLOW}, workflow_agent()),
    "Harbor waits longer than the core": (
        {"program": FLOW, "agent_timeout_sec": 30.0},
        workflow_agent(timeout=100.0),
    ),
    "a deadline that has passed": (
        {"program": FLOW, "agent_timeout_sec": 0.0},
        workflow_agent(timeout=70.0),
    ),
    "a limit on the setup": (
        {"program": FLOW, "options": AgentOptions("openai/m", {}, 90.0)},
        workflow_agent(setup=90.0),
    ),
    "a native agent has Harbor's deadline alone": (
        {"program": ORACLE, "agent_timeout_sec": 30.0},
        AgentConfig(name="oracle", override_timeout_sec=30.0),
    ),
    "its arguments are the caller's": (
        {"program": ORACLE, "options": AgentOptions("openai/m", {"cheat": True}, 90.0)},
        AgentConfig(name="oracle", override_setup_timeout_sec=90.0, kwargs={"cheat": True}),
    ),
}


@pytest.mark.parametrize("case", AGENT_CASES)
async def test_the_agent(case: str, tmp_path: Path) -> None:
    fields, expected = AGENT_CASES[case]
    async with living(make_spec(tmp_path, **fields)) as trial:
        trial.key = TRIAL_KEY
        assert trial_config(trial, ENVIRONMENTS).agent == expected


def grader(timeout: float = WEEK, *, shared: bool = False) -> VerifierConfig:
    return VerifierConfig(
        import_path="harbor_backend.trial.grader_verifier:GraderVerifier",
        override_timeout_sec=timeout,
        kwargs={
            "trial_key": TRIAL_KEY,
            "shared": shared,
            "environment_config": GRADERS.model_dump(mode="json"),
        },
    )


NOTHING = VerifierConfig(disable=True)


def own_tests(timeout: float | None = None) -> VerifierConfig:
    return VerifierConfig(
        import_path="harbor_backend.trial.task_verifier:TaskVerifier",
        override_timeout_sec=timeout,
        kwargs={"trial_key": TRIAL_KEY},
    )


VERIFIER_CASES: dict[str, tuple[dict[str, Any], VerifierConfig]] = {
    "the task's tests": ({"program": FLOW, "has_tests": True}, own_tests()),
    "they win over a grader": ({"program": JUDGED, "has_tests": True}, own_tests()),
    "with the rollout's deadline": (
        {"program": FLOW, "has_tests": True, "request": {"grader_timeout_sec": 20}},
        own_tests(timeout=20),
    ),
    "a grader, where the task has no tests": ({"program": JUDGED, "has_tests": False}, grader()),
    "Harbor waits longer than the grader": (
        {"program": JUDGED, "has_tests": False, "request": {"grader_timeout_sec": 20}},
        grader(timeout=90.0),
    ),
    "a grader in the agent's sandbox": (
        {"program": JUDGED, "has_tests": False, "shared_grading": True},
        grader(shared=True),
    ),
    "neither": ({"program": FLOW, "has_tests": False}, NOTHING),
    "a rollout that is not to be graded, with tests": (
        {"program": FLOW, "has_tests": True, "request": {"grade": False}},
        NOTHING,
    ),
    "a rollout that is not to be graded, with a grader": (
        {"program": JUDGED, "has_tests": False, "request": {"grade": False}},
        NOTHING,
    ),
    "a native agent's trial is graded the same": (
        {"program": native_program("oracle", grader=True), "has_tests": False},
        grader(),
    ),
}


@pytest.mark.parametrize("case", VERIFIER_CASES)
async def test_the_verifier(case: str, tmp_path: Path) -> None:
    fields, expected = VERIFIER_CASES[case]
    async with living(make_spec(tmp_path, **fields)) as trial:
        trial.key = TRIAL_KEY
        assert trial_config(trial, ENVIRONMENTS).verifier == expected


@pytest.mark.parametrize(
    ("toml", "has_tests", "given", "expected"),
    [
        ("", False, None, None),
        ("", False, 5.0, 5.0),
        ("", True, None, 600.0),
        ("", True, 5.0, 5.0),
        ("[verifier]\ntimeout_sec = 30", True, None, 30.0),
        ("[verifier]\ntimeout_sec = 30", False, None, None),
        ("[[steps]]\nname = 'a'\n[steps.verifier]\ntimeout_sec = 900", True, None, 900.0),
        ("[[steps]]\nname = 'a'\n[steps.verifier]\ntimeout_sec = 5", True, None, 600.0),
    ],
)
def test_how_long_grading_may_take(
    toml: str, has_tests: bool, given: float | None, expected: float | None, tmp_path: Path
) -> None:
    request = {"grader_timeout_sec": given}
    spec = make_spec(tmp_path, program=JUDGED, task=toml, has_tests=has_tests, request=request)
    assert spec.grader_timeout_sec == expected


async def test_the_rest_is_the_trials(tmp_path: Path) -> None:
    async with living(make_spec(tmp_path / "trials", program=FLOW)) as trial:
        config = trial_config(trial, ENVIRONMENTS)
        assert config.task.path == trial.spec.task.path
        assert config.trials_dir / config.trial_name == trial.spec.trial_dir
    assert config.environment == AGENTS
    assert config.timeout_multiplier == 1.0


async def test_nothing_secret_is_in_what_is_written(tmp_path: Path) -> None:
    remote = ModelEndpoint("https://engine.example/v1", "the-remote-token")
    async with (
        Gateway() as gateway,
        gateway.open("r", "http://127.0.0.1:9/v1", KEY) as policy,
        gateway.open("r", "embedded/shell", kind="judge") as judge,
    ):
        spec = make_spec(
            tmp_path,
            program=JUDGED,
            has_tests=False,
            request={
                "label": "the-label",
                "prompt": [{"role": "user", "content": "the-prompt"}],
                "metadata": {"note": "the-metadata"},
            },
            policy=Model(policy, remote),
            judge=Model(judge),
        )
        async with living(spec) as trial:
            written = trial_config(trial, ENVIRONMENTS).model_dump_json()
        secrets = [KEY, policy.token, judge.token, "the-remote-token", policy.url, judge.url]
        for secret in (*secrets, "the-label", "the-prompt", "the-metadata"):
            assert secret not in written
        assert trial.key in written


async def test_a_native_agent_without_a_model_is_refused(tmp_path: Path) -> None:
    async with living(make_spec(tmp_path, program=native_program("terminus-2"))) as trial:
        with pytest.raises(ValueError, match="rollout 'r' has no chat_completions_url"):
            trial_config(trial, ENVIRONMENTS)
