"""An agent of the OpenAI Agents SDK on its Responses model, over an embedded policy."""

import pytest
from agents import Agent, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled

from osmosis_ai.gateway import Gateway
from tests.gateway.clients import openai_client

set_tracing_disabled(True)


@function_tool
def multiply(left: int, right: int) -> int:
    """Multiply two numbers."""
    return left * right


@pytest.mark.parametrize("stream", [False, True])
async def test_an_agent_calls_its_tool_and_answers(gateway: Gateway, stream: bool) -> None:
    async with gateway.open("r1", "embedded/multiply") as endpoint:
        async with openai_client(endpoint) as client:
            model = OpenAIResponsesModel(model="any", openai_client=client)
            agent = Agent(name="a", instructions="Be exact.", model=model, tools=[multiply])
            if stream:
                streamed = Runner.run_streamed(agent, "What is 12 x 34?")
                assert [event async for event in streamed.stream_events()]
                output = streamed.final_output
            else:
                output = (await Runner.run(agent, "What is 12 x 34?")).final_output
        calls = endpoint.calls
    assert output.endswith("#### 408")
    assert [call.finish_reason for call in calls] == ["tool_calls", "stop"]
    assert [call.api for call in calls] == ["responses_as_chat"] * 2
    assert all(call.usage and call.usage.completion_tokens for call in calls)
