"""Token ids and log probabilities: recorded exactly, hidden from who did not ask."""

import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from osmosis_ai.gateway import Capture, Endpoint, Gateway, GatewayLimits
from osmosis_ai.gateway.metrics import call_metrics, untrainable_reason
from tests.gateway.clients import post
from tests.gateway.token_server import TokenServer, Turn, logprob_of, token_server

EXACT = Capture(token_ids=True, logprobs=True)
MESSAGES = [{"role": "user", "content": "hi"}]
HIDDEN = ("token_ids", "prompt_token_ids")


@pytest.fixture
async def tokens(anyio_backend: str) -> AsyncIterator[TokenServer]:
    async with token_server() as server:
        yield server


def turn(flaw: str | None = None) -> Turn:
    return Turn([1, 2, 3], [("one", [7]), (" two", [8, 2**40]), (" three", [9])], flaw=flaw)


def events(answer: httpx.Response) -> list[dict[str, Any]]:
    data = [line[6:] for line in answer.text.splitlines() if line.startswith("data: {")]
    return [json.loads(line) for line in data]


def generated_turn(rng: random.Random, history: list[int]) -> Turn:
    """A turn whose prompt is all that was said before, and some new tokens."""
    history += [rng.randrange(2**32) for _ in range(rng.randrange(1, 9))]
    tool = rng.choice([None, None, "search"])
    pieces = []
    for number in range(rng.randrange(1, 6)):
        # One event may carry several tokens, or one that is no text yet.
        text = rng.choice(["", "word", "é", "日本", " two words", '"q"']) if number else "x"
        pieces.append((text, [rng.randrange(2**32) for _ in range(rng.randrange(1, 4))]))
    return Turn(list(history), pieces, tool)


async def test_a_thousand_conversations_are_recorded_to_the_token(
    tokens: TokenServer, tmp_path: Path
) -> None:
    rng = random.Random(7)
    async with (
        Gateway(records_dir=tmp_path, capture=EXACT) as gateway,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        for number in range(1000):
            history: list[int] = []
            turns: list[Turn] = []
            async with gateway.open(f"r{number}", tokens.url) as endpoint:
                for _ in range(rng.randrange(1, 5)):
                    turns.append(generated_turn(rng, history))
                    history += turns[-1].ids
                    tokens.turns = [turns[-1]]
                    body = {"messages": MESSAGES, "stream": rng.random() < 0.5}
                    answer = await client.post(
                        f"{endpoint.url}/chat/completions",
                        json=body,
                        headers={"Authorization": f"Bearer {endpoint.token}"},
                    )
                    assert answer.status_code == 200
                    assert not any(name in answer.text for name in HIDDEN)
            sent = [token for turn in turns for token in turn.ids]
            assert joined(endpoint) == sent
            assert joined_from_file(tmp_path / f"r{number}.jsonl") == sent
            assert [list(call.prompt_token_ids or []) for call in endpoint.calls] == [
                turn.prompt_ids for turn in turns
            ]
            assert [value for call in endpoint.calls for value in call.logprobs or []] == [
                logprob_of(token) for token in sent
            ]
            assert untrainable_reason(endpoint.calls, endpoint.summary(), ids_required=True) is None


def joined(endpoint: Endpoint) -> list[int]:
    return [token for call in endpoint.calls for token in call.completion_token_ids or []]


def joined_from_file(path: Path) -> list[int]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [token for line in lines for token in line["completion_token_ids"]]


@pytest.mark.parametrize("stream", [False, True])
async def test_the_agent_sees_what_it_asked_for_and_no_more(
    gateway: Gateway, tokens: TokenServer, stream: bool
) -> None:
    tokens.turns = [turn(), turn()]
    body = {"messages": MESSAGES, "stream": stream}
    async with gateway.open("r1", tokens.url, capture=EXACT) as endpoint:
        hidden = await post(endpoint, body)
        shown = await post(endpoint, body | {"logprobs": True, "return_token_ids": True})
    for asked in tokens.asked:
        assert asked["return_token_ids"] is True
        assert asked["logprobs"] is True
    assert not any(name in hidden.text for name in HIDDEN)
    assert 'logprob":' not in hidden.text
    assert "usage" not in hidden.text or not stream
    assert '"token_ids"' in shown.text
    assert '"logprob"' in shown.text
    assert [list(call.completion_token_ids or []) for call in endpoint.calls] == [turn().ids] * 2


@pytest.mark.parametrize("stream", [False, True])
async def test_nothing_is_asked_or_judged_unless_the_operator_says_so(
    gateway: Gateway, tokens: TokenServer, stream: bool
) -> None:
    tokens.turns = [turn()]
    async with gateway.open("r1", tokens.url) as endpoint:
        await post(endpoint, {"messages": MESSAGES, "stream": stream})
        [call] = endpoint.calls
    assert "return_token_ids" not in tokens.asked[0]
    assert (call.completion_token_ids, call.token_gap) == (None, None)
    assert untrainable_reason(endpoint.calls, endpoint.summary()) is None
    required = untrainable_reason(endpoint.calls, endpoint.summary(), ids_required=True)
    assert required == "1 model call(s) without token ids"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("flaw", "reason"),
    [
        ("ids missing", "without token ids|no completion token ids"),
        ("bad ids", "not a list of token ids"),
        ("miscounted", "counted 5 completion tokens and gave 4 ids"),
        ("no prompt ids", "no prompt token ids"),
        ("two choices", "several choices"),
    ],
)
async def test_every_gap_marks_the_call_with_its_reason(
    gateway: Gateway, tokens: TokenServer, stream: bool, flaw: str, reason: str
) -> None:
    tokens.turns = [turn(flaw)]
    async with gateway.open("r1", tokens.url, capture=EXACT) as endpoint:
        answer = await post(endpoint, {"messages": MESSAGES, "stream": stream})
        [call] = endpoint.calls
    assert answer.status_code == 200
    assert call.token_gap is not None
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(call.token_gap)
    assert call.token_gap in (untrainable_reason([call], endpoint.summary()) or "")


async def test_a_stream_that_breaks_is_a_gap_and_keeps_what_came(
    gateway: Gateway, tokens: TokenServer
) -> None:
    tokens.turns = [turn("dies")]
    async with gateway.open("r1", tokens.url, capture=EXACT) as endpoint:
        await post(endpoint, {"messages": MESSAGES, "stream": True})
        [call] = endpoint.calls
    assert list(call.completion_token_ids or []) == [7, 8, 2**40]
    assert "the call failed" in (call.token_gap or "")
    assert endpoint.summary().gaps == 1


async def test_ids_beyond_the_limits_are_gaps_not_lies(tokens: TokenServer, tmp_path: Path) -> None:
    async with Gateway(records_dir=tmp_path, capture=EXACT) as gateway:
        tokens.turns = [turn()]
        limits = GatewayLimits(max_record_tokens=3)
        async with gateway.open("r1", tokens.url, limits=limits) as endpoint:
            await post(endpoint, {"messages": MESSAGES})
            assert "truncated at 3 tokens" in (endpoint.calls[0].token_gap or "")
        tokens.turns = [turn(), turn()]
        limits = GatewayLimits(max_tokens_in_memory=turn_size())
        async with gateway.open("r2", tokens.url, limits=limits) as endpoint:
            await post(endpoint, {"messages": MESSAGES})
            await post(endpoint, {"messages": MESSAGES})
            first, second = endpoint.calls
    assert (first.token_gap, list(first.completion_token_ids or [])) == (None, turn().ids)
    assert second.completion_token_ids is None
    assert "max_tokens_in_memory" in (second.token_gap or "")
    assert "max_tokens_in_memory" in (untrainable_reason([first, second], endpoint.summary()) or "")
    # The file has them all the same.
    assert joined_from_file(tmp_path / "r2.jsonl") == turn().ids * 2


def turn_size() -> int:
    return len(turn().prompt_ids) + 2 * len(turn().ids)


async def test_calls_that_left_memory_make_a_rollout_untrainable(
    gateway: Gateway, tokens: TokenServer
) -> None:
    tokens.turns = [turn(), turn()]
    limits = GatewayLimits(max_calls_in_memory=1)
    async with gateway.open("r1", tokens.url, limits=limits, capture=EXACT) as endpoint:
        for _ in range(2):
            await post(endpoint, {"messages": MESSAGES})
    reason = untrainable_reason(endpoint.calls, endpoint.summary())
    assert reason == "1 model call(s) are no longer in memory (GatewayLimits.max_calls_in_memory)"


async def test_sglangs_field_for_prompt_ids_is_sent_when_asked_for(
    gateway: Gateway, tokens: TokenServer
) -> None:
    tokens.turns = [turn()]
    capture = Capture(token_ids=True, prompt_token_ids=True)
    async with gateway.open("r1", tokens.url, capture=capture) as endpoint:
        await post(endpoint, {"messages": MESSAGES})
    assert tokens.asked[0]["return_prompt_token_ids"] is True


async def test_a_trajectory_gets_tokens_usage_model_and_times(
    gateway: Gateway, tokens: TokenServer
) -> None:
    tokens.turns = [turn()]
    async with gateway.open("r1", tokens.url, capture=EXACT) as endpoint:
        await post(endpoint, {"messages": MESSAGES, "stream": True})
        await post(endpoint, content=b"{")
    [metrics] = call_metrics(endpoint.calls)
    assert metrics.completion_token_ids == turn().ids
    assert metrics.prompt_token_ids == [1, 2, 3]
    assert metrics.logprobs == [logprob_of(token) for token in turn().ids]
    assert (metrics.prompt_tokens, metrics.completion_tokens) == (3, 4)
    assert (metrics.model_name, metrics.cost_usd) == ("m", None)
    assert metrics.extra is not None
    assert metrics.extra["started_at"] == endpoint.calls[0].started_at.isoformat()
    assert metrics.extra["total_sec"] >= metrics.extra["latency_to_first_token_sec"] > 0
    assert "token_gap" not in metrics.extra
