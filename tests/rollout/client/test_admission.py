"""Admission: what is sent, what is sent again, and what never is."""

import asyncio
import json
import socket
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from osmosis_ai.common.retry_after import retry_after_sec
from osmosis_ai.rollout.client import (
    RolloutAdmissionTimeoutError,
    RolloutClient,
    RolloutProtocolError,
)
from osmosis_ai.rollout.client.retry import asked_pause_sec
from tests.rollout.client.scripted import (
    ADMISSION,
    ADMIT,
    HEALTH,
    POLL,
    Scripted,
    Step,
    answered,
    scripted,
)

PROMPT = [{"role": "user", "content": "2 + 2"}]
MODEL = "http://model/v1"


async def run(server: Scripted, timeout_sec: float | None = None, **options: Any) -> Any:
    async with RolloutClient(server.url, admission_timeout_sec=timeout_sec) as client:
        return await client.run_rollout(PROMPT, MODEL, "r-1", **options)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


async def test_only_what_was_given_is_sent() -> None:
    async with scripted() as server, RolloutClient(server.url + "/", api_key="control") as client:
        handle = await client.run_rollout_async(
            PROMPT, MODEL, "r-1", llm_api_key="llm", label="4", grade=False, agent_timeout_sec=0.0
        )
        assert (await handle).status == "success"
        assert handle.admission is not None
        assert handle.admission.polling_lease_token == "token"
    assert json.loads(server.of(ADMIT)[0].body) == {
        "rollout_id": "r-1",
        "initial_messages": PROMPT,
        "chat_completions_url": MODEL,
        "llm_api_key": "llm",
        "label": "4",
        "grade": False,
        "agent_timeout_sec": 0.0,
    }
    assert {call.headers["Authorization"] for call in server.calls} == {"Bearer control"}
    assert server.of(POLL)[0].headers["X-Osmosis-Rollout-Lease"] == "token"


async def test_an_id_is_made_up_when_there_is_none() -> None:
    async with scripted() as server, RolloutClient(server.url) as client:
        handle = await client.run_rollout_async(PROMPT, MODEL)
        sent = json.loads(server.of(ADMIT)[0].body)["rollout_id"]
        assert handle.rollout_id == sent
        assert len(sent) == 32


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"rollout_id": "a/b"}, ValueError),
        ({"agent_timeout_sec": float("nan")}, ValueError),
        ({"metadata": {"x": object()}}, TypeError),
        ({"labl": "4"}, TypeError),
    ],
)
async def test_what_cannot_be_sent_is_not_sent(
    arguments: dict[str, Any], problem: type[Exception]
) -> None:
    async with scripted() as server, RolloutClient(server.url) as client:
        with pytest.raises(problem):
            await client.run_rollout(PROMPT, MODEL, **arguments)
    assert server.calls == []


async def test_no_capacity_is_waited_for() -> None:
    busy = answered(429, Retry_After="0.2")
    async with scripted(admit=[busy, busy, ADMISSION]) as server:
        assert (await run(server)).status == "success"
    first, second, third = server.of(ADMIT)
    assert first.body == second.body == third.body
    assert 0.19 < second.at - first.at < 2


async def test_no_capacity_until_the_admission_timeout() -> None:
    async with scripted(admit=[answered(429, Retry_After="0.1")]) as server:
        with pytest.raises(RolloutAdmissionTimeoutError, match="not accepted") as caught:
            await run(server, 0.5)
    assert caught.value.may_be_running is False
    assert server.count(ADMIT) >= 3


async def test_an_unreachable_server_is_told_at_once_without_a_timeout() -> None:
    async with RolloutClient(f"http://127.0.0.1:{free_port()}") as client:
        with pytest.raises(httpx.ConnectError):
            await client.run_rollout(PROMPT, MODEL)


async def test_an_unreachable_server_is_waited_for_with_one() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    async with RolloutClient(url, admission_timeout_sec=0.5) as client:
        with pytest.raises(RolloutAdmissionTimeoutError):
            await client.run_rollout(PROMPT, MODEL)
    async with RolloutClient(url, admission_timeout_sec=10) as client, asyncio.TaskGroup() as group:
        running = group.create_task(client.run_rollout(PROMPT, MODEL, "r-1"))
        await asyncio.sleep(0.4)
        async with scripted(port):
            assert (await running).status == "success"


@pytest.mark.parametrize("fault", ["drop", 502, 503, 504])
async def test_a_lost_answer_is_asked_for_again_where_the_server_says_so(fault: Step) -> None:
    steps: list[Step] = [503, {"status": "ok", "idempotent_admission": True}]
    async with scripted(admit=[fault, fault, ADMISSION], health=steps) as server:
        assert (await run(server)).status == "success"
    assert server.count(ADMIT) == 3
    assert len({call.body for call in server.of(ADMIT)}) == 1
    assert server.count(HEALTH) == 3


@pytest.mark.parametrize(
    "health", [{"status": "ok"}, {"idempotent_admission": "true"}, answered(401), 500]
)
async def test_a_lost_answer_is_never_asked_for_again_elsewhere(health: Step) -> None:
    async with scripted(admit=["drop", ADMISSION], health=[health]) as server:
        with pytest.raises(RolloutAdmissionTimeoutError, match="may have been accepted") as caught:
            await run(server, 20)
    assert caught.value.may_be_running is True
    assert [call.route for call in server.calls] == [ADMIT, HEALTH]


@pytest.mark.parametrize("status", [502, 503, 504])
async def test_an_unavailable_server_of_another_kind_is_not_asked_again(status: int) -> None:
    async with scripted(admit=[status, ADMISSION], health=[{"status": "ok"}]) as server:
        with pytest.raises(RolloutProtocolError, match=f"scripted {status}") as caught:
            await run(server, 20)
    assert caught.value.status_code == status
    assert server.count(ADMIT) == 1


async def test_a_slow_answer_ends_with_the_admission_timeout() -> None:
    async with scripted(admit=["hang"]) as server:
        began = time.monotonic()
        with pytest.raises(RolloutAdmissionTimeoutError, match="may have been accepted") as caught:
            await run(server, 0.4)
    assert time.monotonic() - began < 3
    assert caught.value.may_be_running is True
    assert [call.route for call in server.calls] == [ADMIT]


async def test_a_server_that_stays_down_after_a_lost_answer() -> None:
    async with scripted(admit=["drop"], health=["drop"]) as server:
        with pytest.raises(
            RolloutAdmissionTimeoutError, match=r"does not recover|admission_timeout"
        ):
            await run(server, 1.0)
    assert server.count(ADMIT) == 1


@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 409, 413, 422, 500])
async def test_a_refusal_is_an_error_with_its_status(status: int) -> None:
    async with scripted(admit=[status]) as server:
        with pytest.raises(RolloutProtocolError) as caught:
            await run(server, 20)
    assert caught.value.status_code == status
    assert [call.route for call in server.calls] == [ADMIT]


async def test_a_refusal_does_not_repeat_the_request() -> None:
    detail = [{"loc": ["body", "label"], "msg": "too odd", "input": {"llm_api_key": "sk-secret"}}]
    async with scripted(admit=[answered(422, {"detail": detail})]) as server:
        with pytest.raises(RolloutProtocolError, match="too odd") as caught:
            await run(server)
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_never_followed(status: int) -> None:
    async with scripted() as elsewhere:
        away = answered(status, Location=elsewhere.url + "/rollout")
        async with (
            scripted(admit=[away]) as server,
            httpx.AsyncClient(follow_redirects=True) as http,
            RolloutClient(server.url, http, api_key="control") as client,
        ):
            with pytest.raises(RolloutProtocolError, match="redirect") as caught:
                await client.run_rollout(PROMPT, MODEL)
    assert caught.value.status_code == status
    assert elsewhere.calls == []


@pytest.mark.parametrize(
    "answer",
    [
        ADMISSION | {"polling_lease_timeout_sec": 0.1},
        ADMISSION | {"polling_lease_token": ""},
        answered(202, [1]),
    ],
)
async def test_an_admission_that_means_nothing(answer: Step) -> None:
    async with scripted(admit=[answer]) as server:
        with pytest.raises(RolloutProtocolError) as caught:
            await run(server)
    assert caught.value.status_code == 202


@pytest.mark.parametrize(
    "arguments",
    [
        {"url": "server:8000"},
        {"url": "ftp://server"},
        {"url": "http://server", "admission_timeout_sec": 0},
        {"url": "http://server", "admission_timeout_sec": float("inf")},
        {"url": "http://server", "api_key": " "},
    ],
)
async def test_a_client_that_could_not_work(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"url|admission_timeout_sec|api_key"):
        RolloutClient(**arguments)


@given(st.one_of(st.none(), st.text(), st.floats().map(str), st.integers().map(str)))
def test_a_retry_after_is_within_its_bounds(value: str | None) -> None:
    assert 0.05 <= asked_pause_sec(retry_after_sec(value)) <= 60


def test_a_retry_after_date() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    date = format_datetime(now + timedelta(seconds=7))
    assert asked_pause_sec(retry_after_sec(date, now=now)) == 7
    assert asked_pause_sec(retry_after_sec("3")) == 3
    assert asked_pause_sec(retry_after_sec(None)) == 5
