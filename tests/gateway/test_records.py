"""What is written of each call."""

import json
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from osmosis_ai.gateway import Gateway, GatewayLimits
from tests.gateway.clients import MULTIPLY_TOOL, PRODUCT, chat, openai_client, post
from tests.gateway.model_server import KEY, ModelServer


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_one_line_per_call_with_both_bodies(tmp_path: Path, model: ModelServer) -> None:
    async with (
        Gateway(records_dir=tmp_path / "made") as gateway,
        gateway.open("run 1:é", model.url, KEY) as endpoint,
    ):
        await post(endpoint, chat("plain", temperature=0.5))
        await post(endpoint, chat("fails"))
        before = datetime.now(UTC)
    path = tmp_path / "made" / "run 1:é.jsonl"
    plain, failed = lines(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert plain["request"] == chat("plain", temperature=0.5)
    assert plain["response"]["choices"][0]["message"]["content"] == "one two three"
    assert plain["usage"] == {
        "prompt_tokens": 11,
        "completion_tokens": 3,
        "cached_tokens": 4,
        "reasoning_tokens": 2,
        "cost_usd": None,
    }
    assert (plain["request_model"], plain["model"]) == ("plain", "served-plain")
    assert (plain["status"], plain["error"], plain["finish_reason"]) == (200, None, "stop")
    assert plain["streamed"] is False
    assert datetime.fromisoformat(plain["started_at"]) < before
    assert failed["status"] == 500
    assert "bad key [REDACTED]" in failed["error"]


async def test_a_stream_is_put_together_again(tmp_path: Path) -> None:
    messages: Any = PRODUCT
    async with (
        Gateway(records_dir=tmp_path) as gateway,
        gateway.open("r1", "embedded/multiply") as endpoint,
        openai_client(endpoint) as client,
    ):
        for tools in ([MULTIPLY_TOOL], []):
            body: dict[str, Any] = {"tools": tools} if tools else {}
            stream: Any = await client.chat.completions.create(
                model="m", messages=messages, stream=True, **body
            )
            assert [chunk async for chunk in stream]
    called, answered = lines(tmp_path / "r1.jsonl")
    [tool_call] = called["response"]["choices"][0]["message"]["tool_calls"]
    assert tool_call["function"]["name"] == "multiply"
    assert json.loads(tool_call["function"]["arguments"]) == {"left": 12, "right": 34}
    message = answered["response"]["choices"][0]["message"]
    assert message["role"] == "assistant"
    assert message["content"].endswith("#### 408")


async def test_a_broken_stream_keeps_what_arrived(tmp_path: Path, model: ModelServer) -> None:
    async with (
        Gateway(records_dir=tmp_path) as gateway,
        gateway.open("r1", model.url, KEY) as endpoint,
    ):
        await post(endpoint, chat("dies", stream=True))
    [line] = lines(tmp_path / "r1.jsonl")
    assert line["response"]["choices"][0]["message"]["content"] == "one"
    assert line["status"] == 502


async def test_no_credential_is_written(tmp_path: Path, model: ModelServer) -> None:
    async with (
        Gateway(records_dir=tmp_path) as gateway,
        gateway.open("r1", model.url, KEY) as endpoint,
    ):
        leak = f"my token is {endpoint.token}, the key is {KEY}"
        await post(endpoint, chat("plain", messages=[{"role": "user", "content": leak}]))
        await post(endpoint, chat("fails"))
    text = (tmp_path / "r1.jsonl").read_text()
    assert KEY not in text
    assert endpoint.token not in text
    assert "my token is [REDACTED], the key is [REDACTED]" in text


async def test_bodies_and_files_are_bounded(tmp_path: Path) -> None:
    limits = GatewayLimits(max_record_bytes=1000, max_records_bytes=6000)
    body = {"messages": [{"role": "user", "content": "word " * 2000}]}
    async with (
        Gateway(records_dir=tmp_path, limits=limits) as gateway,
        gateway.open("r1", "embedded/echo") as endpoint,
    ):
        for stream in (False, True, False, False):
            await post(endpoint, body | {"stream": stream})
    summary = endpoint.summary()
    written = lines(tmp_path / "r1.jsonl")
    assert (tmp_path / "r1.jsonl").stat().st_size <= 6000
    assert 1 <= len(written) < 4
    assert written[0]["request"]["truncated"] is True
    assert written[0]["request"]["bytes"] > 10_000
    assert len(written[0]["request"]["head"]) == 1000
    assert written[1]["response"]["truncated"] is True
    assert summary.calls == 4
    assert "max_records_bytes" in (summary.records_error or "")


async def test_a_symlink_in_the_way_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("precious")
    records = tmp_path / "records"
    records.mkdir()
    (records / "r1.jsonl").symlink_to(target)
    async with (
        Gateway(records_dir=records) as gateway,
        gateway.open("r1", "embedded/echo") as endpoint,
    ):
        assert (await post(endpoint, {"messages": PRODUCT})).status_code == 200
    assert endpoint.summary().records_error
    assert target.read_text() == "precious"


async def test_a_refused_call_is_written_too(tmp_path: Path) -> None:
    async with (
        Gateway(records_dir=tmp_path, limits=GatewayLimits(max_calls=0)) as gateway,
        gateway.open("r1", "embedded/echo") as endpoint,
    ):
        await post(endpoint, {"messages": PRODUCT})
    [line] = lines(tmp_path / "r1.jsonl")
    assert line["status"] == 429
    assert line["request"] is None


async def test_lone_surrogates_do_not_break_the_file(tmp_path: Path, model: ModelServer) -> None:
    content = b'{"model": "plain", "messages": [], "odd": "\\ud800\\u2028"}'
    async with (
        Gateway(records_dir=tmp_path) as gateway,
        gateway.open("r1", model.url, KEY) as endpoint,
    ):
        assert (await post(endpoint, content=content)).status_code == 200
    [line] = lines(tmp_path / "r1.jsonl")
    assert line["request"]["odd"] == "\ud800\u2028"
