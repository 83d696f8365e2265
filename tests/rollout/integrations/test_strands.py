"""The real Strands agent against a real policy server."""

import copy
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from strands import Agent, tool
from strands.models.openai import OpenAIModel

from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowConfig,
    AgentWorkflowContext,
    ExecutionRequest,
    LocalBackend,
    RolloutContext,
    RolloutStatus,
)
from osmosis_ai.rollout.integrations.agents.strands import (
    OsmosisRolloutModel,
    OsmosisStrandsAgent,
    StrandsAgentSampleSource,
)
from osmosis_ai.rollout.trajectory import save_trajectory
from tests.rollout.policy import USAGE, Policy

PROMPT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is ATIF?"},
]


@tool(name="search")
def search_tool(query: str) -> str:
    """Search for information."""
    return f"results for {query}"


class ToolConfig(AgentWorkflowConfig):
    """Holds a model and tools, which are copied for every run."""

    name: str = "tools"
    model: Any = OsmosisRolloutModel(params={"temperature": 0.5})
    tools: Any = [search_tool]  # noqa: RUF012 (pydantic copies it; rollout authors write it so)


class ToolWorkflow(AgentWorkflow[ToolConfig]):
    """One search, one answer."""

    async def run(self, ctx: AgentWorkflowContext[ToolConfig]) -> None:
        """Run the agent to its answer."""
        assert ctx.config is not None
        agent = OsmosisStrandsAgent(
            model=ctx.config.model,
            tools=ctx.config.tools,
            messages=ctx.prompt,
            callback_handler=None,
        )
        await agent.invoke_async()


def context(policy: Policy | None = None, **fields: Any) -> RolloutContext:
    url = policy.url if policy else "http://127.0.0.1:9/v1"
    return RolloutContext(chat_completions_url=url, **fields)


def agent(messages: Any = None, **fields: Any) -> OsmosisStrandsAgent:
    model = OsmosisRolloutModel(params={"temperature": 1.0})
    return OsmosisStrandsAgent(
        **({"model": model, "callback_handler": None} | fields), messages=messages
    )


async def test_a_tool_rollout_through_the_local_backend(
    policy: Policy, artifact_root: Path
) -> None:
    backend = LocalBackend(workflow=ToolWorkflow, workflow_config=ToolConfig())
    with context(policy, api_key="k-1", rollout_id="r-1"):
        outcome = await backend.execute(ExecutionRequest(id="r-1", prompt=PROMPT, grade=False))

    assert outcome.workflow.status is RolloutStatus.SUCCESS, outcome.workflow.err_message
    assert policy.authorizations == ["Bearer k-1", "Bearer k-1"]
    first, second = policy.requests
    assert (first["model"], first["temperature"], first["stream"]) == ("osmosis-rollout", 0.5, True)
    assert first["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "What is ATIF?"}]},
    ]
    assert second["messages"][-1] == {
        "role": "tool",
        "tool_call_id": "call_2",
        "content": "results for ATIF",
    }

    sample = outcome.workflow.sample
    assert sample is not None
    assert [message["role"] for message in sample.messages] == [
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert "toolUse" in sample.messages[1]["content"][0]
    usage = {"usage": USAGE}
    assert sample.trajectory_messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is ATIF?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": "call_2",
                    "type": "function",
                    "function": {"name": "search", "arguments": '{"query": "ATIF"}'},
                }
            ],
            **usage,
        },
        {"role": "tool", "tool_call_id": "call_2", "content": "results for ATIF"},
        {"role": "assistant", "content": "answer to tool", **usage},
    ]

    saved = await save_trajectory(rollout_id="r-1", result=outcome.workflow)
    assert saved.path == artifact_root / "r-1" / "trajectory.json"
    document = json.loads(saved.path.read_text())
    assert document["final_metrics"] == {
        "total_prompt_tokens": 22,
        "total_completion_tokens": 14,
        "total_cached_tokens": 6,
        "total_steps": 4,
    }


async def test_invoking_without_an_argument_again_and_again(policy: Policy) -> None:
    with context(policy):
        running = agent([*PROMPT])
        first = await running.invoke_async()
        running.messages.append({"role": "user", "content": [{"text": "more"}]})
        second = await running.invoke_async()
    answer = [{"text": "answer to user"}]
    assert first.message["content"] == second.message["content"] == answer
    assert [m["role"] for m in running.messages] == ["user", "assistant", "user", "assistant"]
    assert policy.authorizations == ["Bearer no-key-needed"] * 2


async def test_continuing_a_history_that_ends_in_a_tool_result(policy: Policy) -> None:
    history: list[dict[str, Any]] = [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
    ]
    with context(policy):
        result = await agent(history).invoke_async()
    assert result.message["content"] == [{"text": "answer to tool"}]
    assert policy.requests[0]["messages"][1:] == [
        {"role": "assistant", "tool_calls": history[1]["tool_calls"]},
        history[2],
    ]


async def test_a_model_that_does_not_stream(policy: Policy) -> None:
    with context(policy):
        model = OsmosisRolloutModel(stream=False, client_args={"max_retries": 0})
        result = await agent(PROMPT, model=model).invoke_async()
    assert policy.requests[0]["stream"] is False
    assert result.message["content"] == [{"text": "answer to user"}]


def test_messages_are_neither_changed_nor_shared() -> None:
    blocks = [{"text": "mixed"}]
    given = [*PROMPT, {"role": "assistant", "content": "hi"}, {"role": "user", "content": blocks}]
    before = copy.deepcopy(given)
    with context():
        built = agent(given)
    assert built.messages == [
        {"role": "user", "content": [{"text": "What is ATIF?"}]},
        {"role": "assistant", "content": [{"text": "hi"}]},
        {"role": "user", "content": [{"text": "mixed"}]},
    ]
    built.messages[0]["content"].append({"text": "later"})
    built.messages[2]["content"].append({"text": "later"})
    assert given == before


@pytest.mark.parametrize(
    ("system_prompt", "joined"),
    [
        (None, "Be brief."),
        ("And kind.", "Be brief.\n\nAnd kind."),
        ([{"text": "And kind."}], "Be brief.\nAnd kind."),
    ],
)
def test_system_messages_go_before_the_system_prompt(system_prompt: Any, joined: str) -> None:
    with context():
        assert agent(PROMPT, system_prompt=system_prompt).system_prompt == joined


def test_positional_arguments_are_those_of_strands() -> None:
    with context():
        built = OsmosisStrandsAgent(OsmosisRolloutModel(), PROMPT, [search_tool])
    assert isinstance(built.model, OpenAIModel)
    assert built.tool_names == ["search"]
    with context(), pytest.raises(TypeError, match="model"):
        OsmosisStrandsAgent(OsmosisRolloutModel(), model=OsmosisRolloutModel())


def test_a_placeholder_needs_an_active_rollout() -> None:
    with pytest.raises(RuntimeError, match="active rollout"):
        agent()
    with RolloutContext(rollout_id="r"), pytest.raises(RuntimeError, match="chat_completions_url"):
        agent()


def test_one_agent_per_rollout_is_the_source() -> None:
    with context() as active:
        first = agent()
        assert isinstance(active.sample_source, StrandsAgentSampleSource)
        assert active.sample_source.agent is first
        with pytest.raises(ValueError, match="already has a sample source"):
            agent()


def test_an_agent_with_a_model_of_its_own_is_a_plain_one() -> None:
    own = OpenAIModel(model_id="m", client_args={"api_key": "k"})
    with context() as active:
        built = agent(PROMPT, model=own)
    assert built.model is own
    assert active.sample_source is None


@pytest.mark.parametrize(
    "arguments",
    [{"model_id": "gpt"}, {"client_args": {"base_url": "http://x"}}, {"api_key": "k"}],
)
def test_a_placeholder_refuses_to_choose_the_model(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="active rollout decides"):
        OsmosisRolloutModel(**arguments)


async def test_a_placeholder_in_a_plain_agent_says_what_it_is() -> None:
    plain = Agent(model=OsmosisRolloutModel(), callback_handler=None, retry_strategy=None)
    with pytest.raises(Exception, match="placeholder"):
        await plain.invoke_async("hi")


def test_a_config_with_model_and_tools_is_copied_apart() -> None:
    config = ToolConfig()
    copied = copy.deepcopy(config)
    copied.model.update_config(params={"temperature": 0.0})
    assert config.model.get_config()["params"] == {"temperature": 0.5}
    assert copied.tools[0].tool_spec == search_tool.tool_spec


async def test_a_history_that_cannot_be_converted_is_a_sample_without_trajectory(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with context() as active:
        built = agent(PROMPT)
    built.messages.append({"role": "user"})  # type: ignore[typeddict-item]
    sample = await active.get_sample()
    assert sample is not None
    assert len(sample.messages) == 2
    assert sample.trajectory_messages is None
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1
    assert "Failed to convert Strands" in warnings[0].getMessage()


async def test_a_preview_is_an_isolated_copy_of_the_latest_messages() -> None:
    with context() as active:
        built = agent([{"role": "user", "content": str(n)} for n in range(5)])
    source = active.sample_source
    assert source is not None
    assert await source.get_preview(0) is None
    assert await source.get_preview(-1) is None
    preview = await source.get_preview(2)
    assert preview is not None
    assert preview.trajectory_messages == [
        {"role": "user", "content": "3"},
        {"role": "user", "content": "4"},
    ]
    preview.messages[0]["content"][0]["text"] = "changed"
    assert built.messages[3]["content"] == [{"text": "3"}]


def run_python(code: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_neither_import_nor_binding_loads_litellm() -> None:
    loaded = run_python(
        """
        import sys
        from osmosis_ai.rollout import RolloutContext
        from osmosis_ai.rollout.integrations.agents.strands import *
        early = "openai" in sys.modules
        with RolloutContext(chat_completions_url="http://127.0.0.1:9/v1"):
            OsmosisStrandsAgent(model=OsmosisRolloutModel())
        print(early, "openai" in sys.modules, "litellm" in sys.modules, "harbor" in sys.modules)
        """
    )
    assert loaded.split() == ["False", "True", "False", "False"]


@pytest.mark.parametrize("missing", ["strands", "openai"])
def test_a_missing_package_names_the_extra(missing: str) -> None:
    told = run_python(
        f"""
        import sys
        sys.modules[{missing!r}] = None
        from osmosis_ai.rollout import RolloutContext
        try:
            from osmosis_ai.rollout.integrations.agents.strands import *
            with RolloutContext(chat_completions_url="http://127.0.0.1:9/v1"):
                OsmosisStrandsAgent(model=OsmosisRolloutModel())
        except ModuleNotFoundError as exc:
            print(exc)
        """
    )
    assert 'pip install "osmosis-ai[strands]"' in told
