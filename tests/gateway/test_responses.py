"""The Responses API as the openai client sees it."""

import json
from pathlib import Path
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from osmosis_ai.gateway import Capture, Gateway, GatewayLimits
from tests.gateway.clients import openai_client
from tests.gateway.responses_server import responses_server

PRODUCT = "What is 12 x 34?"
TOOL: dict[str, Any] = {
    "type": "function",
    "name": "multiply",
    "description": "Multiplies.",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {"left": {"type": "integer"}, "right": {"type": "integer"}},
        "required": ["left", "right"],
        "additionalProperties": False,
    },
}


def completion(message: dict[str, Any], finish_reason: str = "stop") -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "logprobs": None}
    usage = {
        "prompt_tokens": 11,
        "completion_tokens": 6,
        "total_tokens": 17,
        "prompt_tokens_details": {"cached_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    head = {"id": "c1", "object": "chat.completion", "created": 1, "model": "served"}
    return head | {"choices": [choice | {"finish_reason": finish_reason}], "usage": usage}


def chunks(deltas: list[dict[str, Any]], finish_reason: str = "stop") -> list[dict[str, Any]]:
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "served"}
    end = {"index": 0, "delta": {}, "finish_reason": finish_reason}
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    usage = head | {"choices": [], "usage": completion({})["usage"]}
    return [*(head | {"choices": [choice]} for choice in [*choices, end]), usage]


def call_delta(index: int, arguments: str, **function: str) -> dict[str, Any]:
    head = {"id": f"call_{index}", "type": "function"} if function else {}
    call = {"index": index, **head, "function": {"arguments": arguments, **function}}
    return {"tool_calls": [call]}


async def test_an_embedded_policy_answers_with_text(gateway: Gateway, tmp_path: Path) -> None:
    async with (
        gateway.open("r1", "embedded/multiply") as endpoint,
        openai_client(endpoint) as client,
    ):
        answer = await client.responses.create(
            model="m", instructions="Be exact.", input=PRODUCT, metadata={"kept": "yes"}
        )
        [call] = endpoint.calls
    assert answer.output_text.endswith("#### 408")
    assert (answer.status, answer.model) == ("completed", "embedded/multiply")
    assert (answer.instructions, answer.metadata) == ("Be exact.", {"kept": "yes"})
    assert answer.usage is not None
    assert answer.usage.input_tokens == 7
    assert answer.usage.total_tokens == 7 + answer.usage.output_tokens
    assert call.api == "responses_as_chat"
    assert call.usage is not None
    assert call.usage.prompt_tokens == 7


async def test_an_embedded_policy_calls_a_tool_and_takes_its_result(gateway: Gateway) -> None:
    tools: Any = [TOOL]
    async with (
        gateway.open("r1", "embedded/multiply") as endpoint,
        openai_client(endpoint) as client,
    ):
        async with client.responses.stream(model="m", input=PRODUCT, tools=tools) as stream:
            kinds = [event.type async for event in stream]
            first = await stream.get_final_response()
        [call] = first.output
        assert call.type == "function_call"
        assert json.loads(call.arguments) == {"left": 12, "right": 34}
        history: Any = [
            {"role": "user", "content": PRODUCT},
            *(item.model_dump(exclude_none=True) for item in first.output),
            {"type": "function_call_output", "call_id": call.call_id, "output": "408"},
        ]
        second = await client.responses.create(model="m", input=history, tools=tools)
    assert second.output_text.endswith("#### 408")
    assert kinds[:3] == ["response.created", "response.in_progress", "response.output_item.added"]
    assert set(kinds[3:-3]) == {"response.function_call_arguments.delta"}
    assert kinds[-3:] == [
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ]


async def test_streamed_text_comes_in_openais_order(gateway: Gateway) -> None:
    async with gateway.open("r1", "embedded/multiply") as endpoint:
        async with (
            openai_client(endpoint) as client,
            client.responses.stream(model="m", input=PRODUCT) as stream,
        ):
            events = [event async for event in stream]
            final = await stream.get_final_response()
        [call] = endpoint.calls
    kinds = [event.type for event in events]
    assert kinds[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert set(kinds[4:-4]) == {"response.output_text.delta"}
    assert kinds[-4:] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert final.output_text.endswith("#### 408")
    assert final.usage is not None
    assert call.usage is not None
    assert final.usage.output_tokens == call.usage.completion_tokens
    assert call.latency_to_first_token_sec is not None


@pytest.mark.parametrize("stream", [False, True])
async def test_an_upstream_without_responses_is_asked_once(gateway: Gateway, stream: bool) -> None:
    for missing in (404, 405):
        async with responses_server(native=False, missing=missing) as server:
            message = {"role": "assistant", "content": "hello", "reasoning_content": "I think."}
            server.answers = [completion(message) for _ in range(4)]
            server.chunks = chunks([{"reasoning_content": "I think."}, {"content": "hello"}])
            for rollout in ("r1", "r2"):
                async with (
                    gateway.open(rollout, server.url) as endpoint,
                    openai_client(endpoint) as client,
                ):
                    for _ in range(2):
                        answer = await respond(client, stream, model="m", input="hi")
                        assert answer.output_text == "hello"
                        [reasoning, _] = answer.output
                        assert reasoning.content[0].text == "I think."
                        assert answer.usage.input_tokens_details.cached_tokens == 8
                        assert answer.usage.output_tokens_details.reasoning_tokens == 2
                    assert endpoint.summary().calls == 2
                    assert endpoint.summary().errors == 0
                    assert endpoint.summary().reasoning_tokens == 4
            assert server.paths == ["responses", "chat", "chat", "chat", "chat"]


async def respond(client: openai.AsyncOpenAI, stream: bool, **request: Any) -> Any:
    if not stream:
        return await client.responses.create(**request)
    async with client.responses.stream(**request) as events:
        return await events.get_final_response()


@pytest.mark.parametrize("stream", [False, True])
async def test_an_upstream_with_responses_gets_them_as_they_are(
    tmp_path: Path, stream: bool
) -> None:
    body = {"model": "m", "input": "hi", "previous_response_id": "resp_0", "made_up": {"kept": 1}}
    extra = {"made_up": body.pop("made_up")}
    async with (
        responses_server(native=True) as server,
        Gateway(records_dir=tmp_path) as gateway,
        gateway.open("r1", server.url) as endpoint,
        openai_client(endpoint) as client,
    ):
        answer = await respond(client, stream, **body, extra_body=extra)
        [call] = endpoint.calls
    [(path, asked)] = server.asked
    assert path == "responses"
    assert asked == body | extra | ({"stream": True} if stream else {})
    assert answer.output_text == "native"
    assert (call.api, call.model, call.finish_reason) == ("responses", "native-model", "completed")
    assert call.usage is not None
    assert (call.usage.prompt_tokens, call.usage.completion_tokens) == (9, 4)
    assert (call.usage.cached_tokens, call.usage.reasoning_tokens) == (5, 3)
    assert (call.latency_to_first_token_sec is not None) is stream
    [line] = [json.loads(text) for text in (tmp_path / "r1.jsonl").read_text().splitlines()]
    assert line["response"]["output"][0]["content"][0]["text"] == "native"


async def test_an_unknown_model_does_not_mean_no_responses(gateway: Gateway) -> None:
    async with (
        responses_server(native=True) as server,
        gateway.open("r1", server.url) as endpoint,
        openai_client(endpoint) as client,
    ):
        with pytest.raises(openai.NotFoundError, match="no such model"):
            await client.responses.create(model="unknown", input="hi")
        await client.responses.create(model="m", input="hi")
    assert server.paths == ["responses", "responses"]


@pytest.mark.parametrize(
    ("model", "complaint"), [("breaks", "out of memory"), ("stops", "ended before the answer did")]
)
async def test_a_native_stream_that_goes_wrong_is_an_error(
    gateway: Gateway, model: str, complaint: str
) -> None:
    async with responses_server(native=True) as server, gateway.open("r1", server.url) as endpoint:
        async with openai_client(endpoint) as client:
            stream = await client.responses.create(model=model, input="hi", stream=True)
            try:
                kinds = [event.type async for event in stream]
                assert kinds[-1] == "error"
            except openai.APIError as exc:
                assert complaint in str(exc)  # noqa: PT017
        [call] = endpoint.calls
    assert complaint in (call.error or "")
    assert call.status == 502


async def test_token_ids_are_worth_a_translation(gateway: Gateway) -> None:
    async with (
        responses_server(native=True) as server,
        gateway.open("r1", server.url, capture=Capture(token_ids=True)) as endpoint,
        openai_client(endpoint) as client,
    ):
        server.answers = [completion({"content": "hello"}) | {"prompt_token_ids": [1]}]
        server.answers[0]["choices"][0]["token_ids"] = [1, 2, 3, 4, 5, 6]
        answer = await client.responses.create(model="m", input="hi")
        [call] = endpoint.calls
    assert answer.output_text == "hello"
    assert list(call.completion_token_ids or []) == [1, 2, 3, 4, 5, 6]
    assert call.token_gap is None
    assert server.asked[0][1]["return_token_ids"] is True


async def test_parallel_calls_text_and_refusals_stream_as_items(gateway: Gateway) -> None:
    async with responses_server(native=False) as server:
        server.chunks = chunks(
            [
                {"role": "assistant", "content": ""},
                {"content": "Let me "},
                {"content": "see."},
                call_delta(0, "", name="add"),
                call_delta(1, '{"a"', name="subtract"),
                call_delta(0, '{"a": 1}'),
                call_delta(1, ": 2}"),
                {"refusal": "I will not."},
            ],
            "tool_calls",
        )
        async with gateway.open("r1", server.url) as endpoint, openai_client(endpoint) as client:
            answer: Any = await respond(client, True, model="m", input="hi")
    said, add, subtract, refused = answer.output
    assert said.content[0].text == "Let me see."
    assert (add.name, add.call_id, add.arguments) == ("add", "call_0", '{"a": 1}')
    assert (subtract.name, subtract.arguments) == ("subtract", '{"a": 2}')
    assert refused.content[0].refusal == "I will not."


async def test_an_answer_cut_short_is_incomplete(gateway: Gateway) -> None:
    async with responses_server(native=False) as server:
        server.answers = [completion({"content": "One, tw"}, "length")]
        server.chunks = chunks([{"content": "One, tw"}], "length")
        async with gateway.open("r1", server.url) as endpoint, openai_client(endpoint) as client:
            whole = await client.responses.create(model="m", input="hi", max_output_tokens=2)
            stream = await client.responses.create(model="m", input="hi", stream=True)
            last = [event async for event in stream][-1]
    assert server.asked[1][1]["max_completion_tokens"] == 2
    assert whole.status == "incomplete"
    assert whole.incomplete_details is not None
    assert whole.incomplete_details.reason == "max_output_tokens"
    assert last.type == "response.incomplete"


async def test_structured_output_is_parsed(gateway: Gateway) -> None:
    class Answer(BaseModel):
        product: int

    async with responses_server(native=False) as server:
        server.answers = [completion({"content": '{"product": 408}'})]
        async with gateway.open("r1", server.url) as endpoint, openai_client(endpoint) as client:
            answer = await client.responses.parse(model="m", input=PRODUCT, text_format=Answer)
    assert answer.output_parsed == Answer(product=408)
    wanted = server.asked[1][1]["response_format"]
    assert wanted["type"] == "json_schema"
    assert wanted["json_schema"]["name"] == "Answer"
    assert wanted["json_schema"]["strict"] is True
    assert wanted["json_schema"]["schema"]["required"] == ["product"]


async def test_a_translated_answer_is_bounded(gateway: Gateway) -> None:
    limits = GatewayLimits(max_response_bytes=600)
    async with responses_server(native=False) as server:
        server.chunks = chunks([{"content": "word " * 20}] * 20)
        async with (
            gateway.open("r1", server.url, limits=limits) as endpoint,
            openai_client(endpoint) as client,
        ):
            stream = await client.responses.create(model="m", input="hi", stream=True)
            with pytest.raises(openai.APIError, match="max_response_bytes"):
                async for _ in stream:
                    pass
        assert endpoint.summary().limit_events[0].limit == "max_response_bytes"


async def test_an_item_that_cannot_be_translated_is_a_400_that_names_it(gateway: Gateway) -> None:
    given: Any = [{"type": "computer_call_output", "call_id": "c", "output": {}}]
    async with (
        gateway.open("r1", "embedded/echo") as endpoint,
        openai_client(endpoint) as client,
    ):
        with pytest.raises(openai.BadRequestError, match=r"input\.0: 'computer_call_output'"):
            await client.responses.create(model="m", input=given)
        assert endpoint.summary().errors == 1
