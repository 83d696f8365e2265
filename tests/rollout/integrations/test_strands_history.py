"""A Strands agent that trims what it sends: the sample still holds the whole rollout."""

import asyncio
from typing import Any

import pytest
from strands import tool
from strands.agent.conversation_manager import (
    ConversationManager,
    SlidingWindowConversationManager,
    SummarizingConversationManager,
)

from osmosis_ai.rollout import RolloutContext, RolloutSample
from osmosis_ai.rollout.closing import closing_after_run
from osmosis_ai.rollout.integrations.agents.strands import OsmosisRolloutModel, OsmosisStrandsAgent
from tests.rollout.integrations.scripted import calls, says, serve_script

LONG = "long " * 400


@tool(name="read")
def read_tool(page: int) -> str:
    """Read a page."""
    return f"{page}: {LONG}"


def agent(manager: ConversationManager | None = None, **fields: Any) -> OsmosisStrandsAgent:
    return OsmosisStrandsAgent(
        model=OsmosisRolloutModel(params={"top_k": 7}),
        callback_handler=None,
        conversation_manager=manager,
        **fields,
    )


def context(url: str) -> RolloutContext:
    return RolloutContext(chat_completions_url=url)


async def texts(active: RolloutContext) -> list[str]:
    """The first line of every message of the sample."""
    sample = await active.get_sample()
    assert isinstance(sample, RolloutSample)
    assert sample.trajectory_messages is not None
    return [str(message["content"])[:8] for message in sample.trajectory_messages]


@pytest.mark.parametrize("per_turn", [False, True])
async def test_a_window_trims_what_is_sent_and_not_the_sample(per_turn: bool) -> None:
    async with serve_script(*(says(f"a{n}") for n in range(6))) as script:
        with context(script.url) as active:
            talking = agent(SlidingWindowConversationManager(4, per_turn=per_turn))
            for n in range(6):
                await talking.invoke_async(f"u{n}")
            said = await texts(active)
    assert len(talking.messages) <= 4
    assert max(len(messages) for messages in script.wire) <= 5
    assert said == [f"{who}{n}" for n in range(6) for who in "ua"]
    assert all(request["top_k"] == 7 for request in script.requests)


async def test_the_default_manager_keeps_a_long_tool_conversation_whole() -> None:
    turns = [calls("read", f"c{n}", page=n) for n in range(30)]
    async with serve_script(*turns, says("read it all")) as script:
        with context(script.url) as active:
            reading = agent(tools=[read_tool], messages=[{"role": "user", "content": "go"}])
            await reading.invoke_async()
            said = await texts(active)
    assert len(reading.messages) < 62
    assert len(said) == 62
    assert said[0] == "go"
    assert said[2] == "0: long "
    assert said[60:] == ["29: long", "read it "]


async def test_a_result_that_is_shortened_after_an_overflow_stays_whole() -> None:
    overflow: dict[str, Any] = {"error": {"message": "maximum context length exceeded"}}
    async with serve_script(calls("read", page=1), overflow, says("done")) as script:
        with context(script.url) as active:
            reading = agent(SlidingWindowConversationManager(), tools=[read_tool])
            await reading.invoke_async("go")
            sample = await active.get_sample()
    assert len(script.wire[2][-1]["content"]) < len(script.wire[1][-1]["content"])
    assert sample is not None
    assert sample.messages[2]["content"][0]["toolResult"]["content"] == [{"text": f"1: {LONG}"}]
    assert [message["role"] for message in sample.messages] == ["user", "assistant"] * 2


async def test_a_summary_is_one_more_message() -> None:
    async with serve_script(says("a0"), says("a1"), says("so far"), says("a2")) as script:
        with context(script.url) as active:
            manager = SummarizingConversationManager(0.5, preserve_recent_messages=2)
            talking = agent(manager)
            await talking.invoke_async("u0")
            await talking.invoke_async("u1")
            await asyncio.to_thread(manager.reduce_context, talking)
            await talking.invoke_async("u2")
            said = await texts(active)
    assert len(talking.messages) == 5
    assert said == ["u0", "a0", "so far", "u1", "a1", "u2", "a2"]


async def test_messages_that_the_workflow_adds_stand_where_it_put_them() -> None:
    async with serve_script(says("a0"), says("a1")) as script:
        with context(script.url) as active:
            talking = agent(messages=[{"role": "user", "content": "u0"}])
            await talking.invoke_async()
            talking.messages.append({"role": "user", "content": [{"text": "u1"}]})
            await talking.invoke_async()
            talking.messages.insert(2, {"role": "assistant", "content": [{"text": "mid"}]})
            assert await texts(active) == ["u0", "a0", "mid", "u1", "a1"]
            talking.messages = talking.messages[-2:]
            assert await texts(active) == ["u0", "a0", "mid", "u1", "a1"]
            talking.messages = [{"role": "user", "content": [{"text": "anew"}]}]
            assert await texts(active) == ["anew"]


async def test_one_client_serves_the_rollout_and_is_closed_after_it() -> None:
    async with serve_script(says("a0"), says("a1")) as script:
        with context(script.url):
            async with closing_after_run():
                talking = agent()
                shared = talking.model._custom_client  # type: ignore[attr-defined]
                await talking.invoke_async("u0")
                client = shared.chat._client
                await talking.invoke_async("u1")
                assert shared.chat._client is client
                assert not client.is_closed()
            assert client.is_closed()


async def test_synchronous_calls_have_event_loops_of_their_own() -> None:
    async with serve_script(says("a0"), says("a1"), says("a2")) as script:
        with context(script.url) as active:
            talking = agent()
            for prompt in ("u0", "u1"):
                await asyncio.to_thread(talking, prompt)
            await talking.invoke_async("u2")
            assert await texts(active) == ["u0", "a0", "u1", "a1", "u2", "a2"]
