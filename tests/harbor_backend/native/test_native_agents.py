"""Where Harbor's own agents would call, by Harbor's own resolution of their arguments."""

import os
from pathlib import Path
from typing import Any

import pytest
from harbor.agents.factory import AgentFactory
from harbor.models.agent.context import AgentContext

from harbor_backend.core.spec import AgentOptions
from harbor_backend.native.agent import NativeAgent, native_config
from harbor_backend.program.native_agents import (
    ENDPOINTLESS,
    SANDBOX_ACCESS,
    TABLE,
    Access,
    agent_class,
    setup_for,
)
from osmosis_ai.gateway import Gateway
from tests.harbor_backend.specs import living, make_spec, program_of

ACCESS = Access("http://127.0.0.1:9/v1", "a-token-of-one-rollout")
REGISTERED = sorted({name.value for name in AgentFactory._AGENT_MAP} - ENDPOINTLESS)
# Other ways to a model, which lie around in an operator's environment.
AMBIENT = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"]
AMBIENT_URLS = ["OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_BASE_URL"]


def built(agent: str, given: dict[str, Any], model: str, logs_dir: Path) -> Any:
    """The agent as ``NativeAgent`` makes it."""
    setup = setup_for(agent)
    model = setup.model_name(model)
    return agent_class(agent)(
        logs_dir=logs_dir,
        model_name=model,
        extra_env=setup.environment(ACCESS),
        **setup.arguments(given, model, ACCESS),
    )


def accepted_agents() -> list[str]:
    """The registered agents that are accepted."""
    names = []
    for name in REGISTERED:
        try:
            setup_for(name)
        except ValueError:
            continue
        names.append(name)
    return names


@pytest.fixture
def ambient(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that would lead an agent to public providers."""
    for name in AMBIENT:
        monkeypatch.setenv(name, "sk-a-real-key")
    for name in AMBIENT_URLS:
        monkeypatch.setenv(name, "https://public.invalid/v1")


@pytest.mark.usefixtures("ambient")
@pytest.mark.parametrize("model", ["openai/osmosis-rollout", "anthropic/claude", "plain"])
@pytest.mark.parametrize("agent", accepted_agents())
def test_every_accepted_agent_asks_the_endpoint_only(
    agent: str, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("langgraph.json").write_text('{"graphs": {"agent": "./a.py:graph"}}')  # it wants a project
    Path("a.py").touch()
    given = {"base_url": "https://public.invalid/v1", "model_api_key_name": "ANTHROPIC_API_KEY"}
    connection = built(agent, given, model, tmp_path).model_connection
    native_config = built(agent, given, model, tmp_path).options
    urls = {connection.execution_base_url, connection.candidate_base_url} - {None}
    assert urls == {ACCESS.url}
    assert connection.api_key == ACCESS.key
    for value in connection.env.values():
        assert "sk-a-real-key" not in value
        assert "public.invalid" not in value
    assert "public.invalid" not in str(native_config)


def test_the_named_agents_are_accepted_and_those_of_other_apis_are_not() -> None:
    accepted = accepted_agents()
    assert set(TABLE) <= set(accepted)
    assert {"goose", "qwen-coder", "codex"} <= set(accepted)
    assert not {"claude-code", "gemini-cli", "cursor-cli", "computer-1"} & set(accepted)


@pytest.mark.parametrize(
    ("agent", "why"),
    [("claude-code", "anthropic_messages"), ("computer-1", "from this process"), ("no-such", "")],
)
def test_an_agent_that_takes_no_endpoint_is_refused_by_name(agent: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"agent='{agent}'") as caught:
        program_of(agent)
    assert why in str(caught.value)


def test_the_callers_arguments_win_over_defaults_and_lose_to_the_endpoint() -> None:
    given = {
        "enable_summarize": True,
        "max_turns": 3,
        "api_base": "https://public.invalid",
        "llm_kwargs": {"api_key": "sk-mine", "top_p": 0.5},
        "llm_backend": "tinker",
    }
    assert TABLE["terminus-2"].arguments(given, "openai/m", ACCESS) == {
        "enable_summarize": True,
        "record_terminal_session": False,
        "max_turns": 3,
        "api_base": ACCESS.url,
        "llm_kwargs": {"api_key": ACCESS.key, "top_p": 0.5},
        "llm_backend": "litellm",
    }
    assert given["llm_kwargs"] == {"api_key": "sk-mine", "top_p": 0.5}


def test_mini_swe_agent_gets_its_endpoint_from_the_environment() -> None:
    assert TABLE["mini-swe-agent"].environment(ACCESS) == {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "MSWEA_COST_TRACKING": "ignore_errors",
        "OPENAI_API_BASE": ACCESS.url,
        "OPENAI_BASE_URL": ACCESS.url,
        "OPENAI_API_KEY": ACCESS.key,
    }


def test_opencode_gets_a_provider_of_its_own() -> None:
    setup = TABLE["opencode"]
    model = setup.model_name("openai/osmosis-rollout")
    assert model == "osmosis-rollout/osmosis-rollout"
    given = {"opencode_config": {"agent": {"build": {"steps": 5}}, "model": "anthropic/claude"}}
    assert setup.arguments(given, model, ACCESS)["opencode_config"] == {
        "compaction": {"auto": False, "prune": False},
        "agent": {"title": {"disable": True}, "build": {"steps": 5}},
        "provider": {
            "osmosis-rollout": {
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": ACCESS.url, "apiKey": "{env:OPENAI_API_KEY}"},
                "models": {"osmosis-rollout": {}},
            }
        },
        "model": model,
        "small_model": model,
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("openai/osmosis-rollout", "openai/osmosis-rollout"),
        ("osmosis-rollout", "openai/osmosis-rollout"),
        ("anthropic/claude", "openai/anthropic/claude"),
    ],
)
def test_a_model_is_always_asked_for_as_the_endpoints(given: str, expected: str) -> None:
    assert TABLE["mini-swe-agent"].model_name(given) == expected


@pytest.mark.parametrize("agent", ["terminus-2", "mini-swe-agent"])
async def test_the_endpoint_is_in_the_agent_and_not_in_what_is_written(
    agent: str, tmp_path: Path
) -> None:
    given = {"llm_kwargs": {"api_key": "sk-mine"}} if agent == "terminus-2" else {}
    options = AgentOptions("openai/m", given)
    async with (
        Gateway() as gateway,
        gateway.open("r", "embedded/shell", "sk-a-real-key") as endpoint,
        living(make_spec(tmp_path, agent=agent, endpoint=endpoint, options=options)) as trial,
    ):
        config = native_config(trial, agent)
        for secret in (endpoint.token, "sk-mine", "sk-a-real-key"):
            assert secret not in config.model_dump_json()
        made = AgentFactory.create_agent_from_config(config, logs_dir=tmp_path)
        assert isinstance(made, NativeAgent)
        assert made.to_agent_info().name == agent
        assert made.capabilities.atif
        inner = made._agent
        if agent == "terminus-2":
            assert inner.model_connection.api_key == endpoint.token
            assert inner.model_connection.execution_base_url == endpoint.url
            assert made.extra_env == {}
        else:
            assert inner.model_connection.api_key == SANDBOX_ACCESS.key
            assert made.extra_env["OPENAI_BASE_URL"] == SANDBOX_ACCESS.url
        assert endpoint.token not in str(made.extra_env)


@pytest.mark.usefixtures("ambient")
async def test_what_a_sandbox_left_in_its_logs_is_set_aside_before_they_are_read(
    tmp_path: Path,
) -> None:
    async with (
        Gateway() as gateway,
        gateway.open("r", "embedded/shell") as endpoint,
        living(make_spec(tmp_path, agent="mini-swe-agent", endpoint=endpoint)) as trial,
    ):
        config = native_config(trial, "mini-swe-agent")
        logs = tmp_path / "logs"
        logs.mkdir()
        made = AgentFactory.create_agent_from_config(config, logs_dir=logs)
        for name in ("trajectory.json", "mini-swe-agent.trajectory.json"):
            os.mkfifo(logs / name)
        made.populate_context_post_run(AgentContext())
        assert sorted(path.name for path in logs.iterdir()) == [
            "mini-swe-agent.trajectory.json.set-aside",
            "trajectory.json.set-aside",
        ]
        assert len(trial.results.notes) == 2
