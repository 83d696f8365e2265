"""The real OpenAI Agents SDK against real policy servers."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from agents import ModelSettings, RunConfig, Runner, function_tool
from openai.types.responses import ResponseTextDeltaEvent
from pydantic import BaseModel

from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowConfig,
    AgentWorkflowContext,
    ExecutionRequest,
    LocalBackend,
    RolloutContext,
    RolloutErrorCategory,
    RolloutSample,
    RolloutStatus,
)
from osmosis_ai.rollout.closing import closing_after_run
from osmosis_ai.rollout.integrations.agents.openai_agents import (
    BoundRolloutModel,
    OsmosisAgent,
    OsmosisMemorySession,
    OsmosisRolloutModel,
)
from osmosis_ai.rollout.trajectory import save_trajectory
from tests.rollout.integrations.scripted import USAGE, calls, says, serve_script
from tests.rollout.policy import Policy

PROMPT: list[Any] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is ATIF?"},
]
USER: list[Any] = PROMPT[1:]


@function_tool
def search(query: str) -> str:
    """Search for information."""
    return f"results for {query}"


class Config(AgentWorkflowConfig):
    """Holds a model and tools, which are copied for every run."""

    name: str = "tools"
    model: Any = OsmosisRolloutModel(params={"temperature": 0.5})
    tools: Any = [search]  # noqa: RUF012 (pydantic copies it; rollout authors write it so)


class ToolWorkflow(AgentWorkflow[Config]):
    """One search, one answer."""

    async def run(self, ctx: AgentWorkflowContext[Config]) -> None:
        """Run the agent to its answer."""
        assert ctx.config is not None
        agent = OsmosisAgent(
            name="searcher",
            instructions="Search first.",
            model=ctx.config.model,
            tools=ctx.config.tools,
        )
        prompt: Any = ctx.prompt
        await Runner.run(agent, prompt, session=OsmosisMemorySession())


def context(url: str = "http://127.0.0.1:9/v1", **fields: Any) -> RolloutContext:
    return RolloutContext(chat_completions_url=url, **fields)


def agent(name: str = "a", *, params: Any = None, stream: bool = False, **fields: Any) -> Any:
    model = OsmosisRolloutModel(params=params, stream=stream)
    return OsmosisAgent(**{"name": name, "model": model, **fields})


async def sample_of(active: RolloutContext) -> RolloutSample:
    sample = await active.get_sample()
    assert sample is not None
    return sample


async def test_a_tool_rollout_through_the_local_backend(
    policy: Policy, artifact_root: Path
) -> None:
    backend = LocalBackend(workflow=ToolWorkflow, workflow_config=Config())
    with context(policy.url, api_key="k-1", rollout_id="r-1"):
        outcome = await backend.execute(ExecutionRequest(id="r-1", prompt=PROMPT, grade=False))

    assert outcome.workflow.status is RolloutStatus.SUCCESS, outcome.workflow.err_message
    assert policy.authorizations == ["Bearer k-1", "Bearer k-1"]
    first, second = policy.requests
    assert (first["model"], first["temperature"]) == ("osmosis-rollout", 0.5)
    assert first["messages"] == [
        {"role": "system", "content": "Search first.\n\nBe brief."},
        {"role": "user", "content": "What is ATIF?"},
    ]
    assert second["messages"][-1] == {
        "role": "tool",
        "tool_call_id": "call_2",
        "content": "results for ATIF",
    }

    sample = outcome.workflow.sample
    assert sample is not None
    assert sample.messages[:2] == PROMPT
    assert [item["type"] for item in sample.messages[2:]] == [
        "function_call",
        "function_call_output",
        "message",
    ]
    assert sample.trajectory_messages == [
        {"role": "system", "content": "Search first.\n\nBe brief."},
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
        },
        {"role": "tool", "tool_call_id": "call_2", "content": "results for ATIF"},
        {"role": "assistant", "content": "answer to tool"},
    ]
    saved = await save_trajectory(rollout_id="r-1", result=outcome.workflow)
    assert saved.path == artifact_root / "r-1" / "trajectory.json"
    steps = json.loads(saved.path.read_text())["steps"]
    assert [step["source"] for step in steps] == ["system", "user", "agent", "agent"]


async def test_a_streamed_run_yields_pieces_and_the_same_sample() -> None:
    samples, pieces = [], []
    for streamed in (True, False):
        async with serve_script(calls("search", query="x"), says("found it")) as script:
            with context(script.url) as active:
                session = OsmosisMemorySession()
                if streamed:
                    run = Runner.run_streamed(agent(tools=[search]), USER, session=session)
                    async for event in run.stream_events():
                        data = getattr(event, "data", None)
                        if isinstance(data, ResponseTextDeltaEvent):
                            pieces.append(data.delta)
                    assert run.final_output == "found it"
                    assert run.context_wrapper.usage.total_tokens == 2 * USAGE["total_tokens"]
                else:
                    await Runner.run(agent(tools=[search]), USER, session=session)
                samples.append((await sample_of(active)).trajectory_messages)
        assert all(request.get("stream", False) is streamed for request in script.requests)
    assert pieces == list("found it")
    assert samples[0] == samples[1]


async def test_a_model_that_always_streams() -> None:
    async with serve_script(says("hi")) as script:
        with context(script.url):
            run = await Runner.run(agent(stream=True), "hello", session=OsmosisMemorySession())
    assert run.final_output == "hi"
    assert script.requests[0]["stream"] is True
    assert run.context_wrapper.usage.requests == 1
    assert run.context_wrapper.usage.total_tokens == USAGE["total_tokens"]


class City(BaseModel):
    """A structured answer."""

    name: str
    people: int


@pytest.mark.parametrize("stream", [False, True])
async def test_structured_output(stream: bool) -> None:
    params = {"response_format": {"type": "text"}}
    async with serve_script(says('{"name": "Ulm", "people": 130000}')) as script:
        with context(script.url):
            asking = agent(output_type=City, params=params, stream=stream)
            run = await Runner.run(asking, "a city", session=OsmosisMemorySession())
    assert run.final_output == City(name="Ulm", people=130_000)
    assert script.requests[0]["response_format"]["type"] == "json_schema"


async def test_a_handoff_shares_context_and_session() -> None:
    replies = [calls("transfer_to_expert"), calls("search", "call_2", query="x"), says("done")]
    async with serve_script(*replies) as script:
        with context(script.url) as active:
            expert = agent("expert", instructions="You know.", tools=[search])
            first = agent("front", instructions="Hand over.", handoffs=[expert])
            run = await Runner.run(first, PROMPT, session=OsmosisMemorySession())
            sample = await sample_of(active)
    assert run.last_agent is expert
    assert [messages[0]["content"] for messages in script.wire] == [
        "Hand over.\n\nBe brief.",
        "You know.\n\nBe brief.",
        "You know.\n\nBe brief.",
    ]
    assert sample.trajectory_messages is not None
    told = [(m["role"], m["content"]) for m in sample.trajectory_messages]
    assert told == [
        ("system", "Hand over.\n\nBe brief."),
        ("user", "What is ATIF?"),
        ("assistant", ""),
        ("tool", json.dumps({"assistant": "expert"})),
        ("system", "You know.\n\nBe brief."),
        ("assistant", ""),
        ("tool", "results for x"),
        ("assistant", "done"),
    ]


async def test_an_agent_as_a_tool_has_a_conversation_of_its_own() -> None:
    replies = [calls("ask", input="sum it up"), says("short"), says("all done")]
    async with serve_script(*replies) as script:
        with context(script.url) as active:
            helper = agent("helper", instructions="Summarise.")
            tool = helper.as_tool(tool_name="ask", tool_description="Ask the helper.")
            main = agent("main", instructions="Lead.", tools=[tool])
            await Runner.run(main, USER, session=OsmosisMemorySession())
            sample = await sample_of(active)
    assert script.wire[1][0]["content"] == "Summarise."
    assert sample.trajectory_messages is not None
    assert [(m["role"], m["content"]) for m in sample.trajectory_messages] == [
        ("system", "Lead."),
        ("user", "What is ATIF?"),
        ("assistant", ""),
        ("tool", "short"),
        ("assistant", "all done"),
    ]


async def test_several_runs_on_one_session() -> None:
    async with serve_script(says("one"), says("two"), says("three")) as script:
        with context(script.url) as active:
            session = OsmosisMemorySession()
            await Runner.run(agent(instructions="I."), PROMPT, session=session)
            await Runner.run(agent(instructions="I."), "more", session=session)
            await Runner.run(agent(instructions="Other."), "last", session=session)
            sample = await sample_of(active)
    assert [len(messages) for messages in script.wire] == [2, 4, 6]
    assert sample.trajectory_messages is not None
    assert [(m["role"], m["content"]) for m in sample.trajectory_messages] == [
        ("system", "I.\n\nBe brief."),
        ("user", "What is ATIF?"),
        ("assistant", "one"),
        ("user", "more"),
        ("assistant", "two"),
        ("user", "last"),
        ("system", "Other.\n\nBe brief."),
        ("assistant", "three"),
    ]


async def test_system_messages_later_in_the_prompt_stay_where_they_stand() -> None:
    later: Any = {"role": "system", "content": "Now in French."}
    async with serve_script(says("oui")) as script:
        with context(script.url) as active:
            await Runner.run(agent(), [*PROMPT, later], session=OsmosisMemorySession())
            sample = await sample_of(active)
    assert script.wire == [[*PROMPT, later]]
    assert sample.trajectory_messages == [*PROMPT, later, {"role": "assistant", "content": "oui"}]


async def test_a_prompt_that_ends_in_a_tool_result() -> None:
    history: list[Any] = [
        {"role": "user", "content": "go"},
        calls("search", query="x") | {"content": "Let me see."},
        {"role": "tool", "tool_call_id": "call_1", "content": "found"},
    ]
    async with serve_script(says("fine")) as script:
        with context(script.url) as active:
            await Runner.run(agent(), history, session=OsmosisMemorySession())
            sample = await sample_of(active)
    assert script.wire == [history]
    assert sample.trajectory_messages == [*history, {"role": "assistant", "content": "fine"}]


async def test_settings_win_over_params_and_the_run_over_both() -> None:
    params = {"temperature": 0.1, "top_p": 0.2, "max_tokens": 3, "seed": 4, "top_k": 5}
    settings = ModelSettings(temperature=0.6, top_p=0.7)
    async with serve_script(says("hi")) as script:
        with context(script.url):
            await Runner.run(
                agent(params=params, model_settings=settings),
                "hello",
                session=OsmosisMemorySession(),
                run_config=RunConfig(model_settings=ModelSettings(temperature=0.9)),
            )
    sent = {name: script.requests[0][name] for name in params}
    assert sent == {"temperature": 0.9, "top_p": 0.7, "max_tokens": 3, "seed": 4, "top_k": 5}


async def test_a_required_tool_choice_is_reset_after_the_tool_ran() -> None:
    async with serve_script(calls("search", query="x"), says("done")) as script:
        with context(script.url):
            settings = ModelSettings(tool_choice="required")
            asking = agent(tools=[search], model_settings=settings, params={"seed": 1})
            await Runner.run(asking, USER, session=OsmosisMemorySession())
    assert [request.get("tool_choice") for request in script.requests] == ["required", None]


async def test_a_call_needs_a_registered_source() -> None:
    async with serve_script() as script:
        with context(script.url), pytest.raises(RuntimeError, match="OsmosisMemorySession"):
            await Runner.run(agent(), "hello")
    assert script.requests == []


class Forgetful(AgentWorkflow[AgentWorkflowConfig]):
    """Makes a session and does not use it."""

    async def run(self, ctx: AgentWorkflowContext[AgentWorkflowConfig]) -> None:
        """Run without the session."""
        OsmosisMemorySession()
        await Runner.run(agent(), "hello")


async def test_a_session_that_no_run_used_is_an_error(artifact_root: Path) -> None:
    async with serve_script(says("lost")) as script:
        with context(script.url):
            request = ExecutionRequest(id="r", prompt=USER, grade=False)
            outcome = await LocalBackend(workflow=Forgetful).execute(request)
    assert outcome.workflow.err_category is RolloutErrorCategory.AGENT_ERROR
    assert "session=session" in (outcome.workflow.err_message or "")


def test_a_placeholder_needs_an_active_rollout() -> None:
    with pytest.raises(RuntimeError, match="active rollout"):
        agent()
    with pytest.raises(RuntimeError, match="active rollout"):
        BoundRolloutModel()
    with RolloutContext(rollout_id="r"), pytest.raises(RuntimeError, match="chat_completions_url"):
        agent()


def test_other_models_are_left_alone() -> None:
    assert OsmosisAgent(name="a", model="gpt-x").model == "gpt-x"
    assert OsmosisAgent(name="a").model is None
    with context():
        bound = agent()
        copied = bound.clone(instructions="new")
        assert isinstance(copied, OsmosisAgent)
        assert copied.model is bound.model
        positional = OsmosisAgent("a", None, [search], model=OsmosisRolloutModel())
    assert isinstance(positional.model, BoundRolloutModel)
    assert positional.tools == [search]


def test_a_config_with_model_and_tools_is_copied_apart() -> None:
    config = Config()
    copied = copy.deepcopy(config)
    copied.model.params["temperature"] = 0.0
    assert config.model.params == {"temperature": 0.5}
    assert copied.tools[0].name == "search"


async def test_the_client_is_closed_after_the_run() -> None:
    async with serve_script(says("hi")) as script:
        with context(script.url):
            async with closing_after_run():
                asking = agent()
                await Runner.run(asking, "hello", session=OsmosisMemorySession())
                assert not asking.model._client.is_closed()
            assert asking.model._client.is_closed()


async def test_a_failing_policy_is_the_workflows_failure(artifact_root: Path) -> None:
    async with serve_script() as script:
        with context(script.url):
            request = ExecutionRequest(id="r", prompt=USER, grade=False)
            backend = LocalBackend(workflow=ToolWorkflow, workflow_config=Config())
            outcome = await backend.execute(request)
    assert outcome.workflow.status is RolloutStatus.FAILURE
    assert "script is over" in (outcome.workflow.err_message or "")
