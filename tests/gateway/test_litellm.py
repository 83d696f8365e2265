"""Providers through LiteLLM, here an OpenAI-compatible server on this machine."""

import subprocess
import sys
from typing import Any

import pytest

from osmosis_ai.gateway import Gateway
from tests.gateway.clients import chat, openai_client, post
from tests.gateway.model_server import KEY, ModelServer


def upstream(model: ModelServer, name: str) -> str:
    return f"litellm/openai/{name}?api_base={model.url}"


async def test_a_whole_answer_comes_through(gateway: Gateway, model: ModelServer) -> None:
    async with gateway.open("r1", upstream(model, "plain"), KEY) as endpoint:
        async with openai_client(endpoint) as client:
            answer = await client.chat.completions.create(
                model="whatever", messages=[{"role": "user", "content": "hi"}], temperature=0.5
            )
            models = await client.models.list()
        [call] = endpoint.calls
    assert answer.choices[0].message.content == "one two three"
    assert model.bodies[0]["model"] == "plain"
    assert model.bodies[0]["temperature"] == 0.5
    assert (call.request_model, call.finish_reason, call.error) == ("whatever", "stop", None)
    assert call.usage is not None
    assert (call.usage.prompt_tokens, call.usage.cached_tokens) == (11, 4)
    assert [listed.id for listed in models.data] == ["openai/plain"]


async def test_a_stream_comes_through_while_it_is_made(
    gateway: Gateway, model: ModelServer
) -> None:
    async with gateway.open("r1", upstream(model, "slow-stream"), KEY) as endpoint:
        async with openai_client(endpoint) as client:
            stream = await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "hi"}], stream=True
            )
            texts: list[str] = []
            async for chunk in stream:
                if chunk.choices and (text := chunk.choices[0].delta.content):
                    texts.append(text)
                    model.go_on.set()
        [call] = endpoint.calls
    assert texts == ["one", " two"]
    assert (call.finish_reason, call.error) == ("stop", None)
    assert call.usage is not None
    assert call.usage.completion_tokens == 3


async def test_a_known_models_cost_is_recorded(gateway: Gateway, model: ModelServer) -> None:
    async with gateway.open("r1", upstream(model, "gpt-4o"), KEY) as endpoint:
        answer = await post(endpoint, chat("m"))
        [call] = endpoint.calls
    assert answer.status_code == 200
    assert call.usage is not None
    assert call.usage.cost_usd is not None
    assert call.usage.cost_usd > 0
    assert endpoint.summary().cost_usd == call.usage.cost_usd


async def test_a_providers_refusal_keeps_its_status(gateway: Gateway, model: ModelServer) -> None:
    async with gateway.open("r1", upstream(model, "plain"), "sk-some-wrong-key") as endpoint:
        answer = await post(endpoint, chat("m"))
        [call] = endpoint.calls
    assert answer.status_code == 401
    assert "who are you" in answer.json()["error"]["message"]
    assert call.status == 401


async def test_a_stream_that_breaks_ends_in_an_error_event(
    gateway: Gateway, model: ModelServer
) -> None:
    async with gateway.open("r1", upstream(model, "dies"), KEY) as endpoint:
        answer = await post(endpoint, chat("m", stream=True))
        [call] = endpoint.calls
    assert "event: error" in answer.text
    assert call.status == 502


async def test_an_agent_cannot_steer_litellm(gateway: Gateway, model: ModelServer) -> None:
    steering: dict[str, Any] = {
        "api_base": "http://127.0.0.1:1/v1",
        "api_key": "sk-agents-own",
        "mock_response": "a lie",
        "custom_llm_provider": "anthropic",
        "extra_headers": {"x-steered": "1"},
    }
    async with gateway.open("r1", upstream(model, "plain"), KEY) as endpoint:
        answer = await post(endpoint, chat("m", **steering))
    assert answer.status_code == 200
    assert answer.json()["choices"][0]["message"]["content"] == "one two three"
    assert model.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert "x-steered" not in {name.lower() for name in model.headers[0]}


async def test_responses_are_translated_for_it(gateway: Gateway, model: ModelServer) -> None:
    async with (
        gateway.open("r1", upstream(model, "plain"), KEY) as endpoint,
        openai_client(endpoint) as client,
    ):
        answer = await client.responses.create(model="m", input="hi")
    assert answer.output_text == "one two three"


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("litellm/", "litellm/<provider>/<model>"),
        ("litellm/openai", "litellm/<provider>/<model>"),
        ("litellm/openai/m?mock_response=x", "unknown parameters .*mock_response"),
    ],
)
async def test_a_wrong_name_is_refused_at_open(gateway: Gateway, spec: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        async with gateway.open("r1", spec):
            pass


def test_without_litellm_the_extra_is_named() -> None:
    code = (
        "import sys, asyncio\n"
        "sys.modules['litellm'] = None\n"
        "from osmosis_ai.gateway import Gateway\n"
        "async def main():\n"
        "    async with Gateway() as gateway:\n"
        "        async with gateway.open('r1', 'litellm/anthropic/claude'):\n"
        "            pass\n"
        "asyncio.run(main())\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 1
    assert "pip install 'osmosis-ai[litellm]'" in ended.stderr


def test_litellm_is_imported_by_a_call_only() -> None:
    code = (
        "import sys, asyncio\n"
        "from osmosis_ai.gateway import Gateway\n"
        "async def main():\n"
        "    async with Gateway() as gateway:\n"
        "        async with gateway.open('r1', 'litellm/anthropic/claude'):\n"
        "            assert 'litellm' not in sys.modules\n"
        "asyncio.run(main())\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
