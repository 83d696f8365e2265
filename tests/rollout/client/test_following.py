"""Following a rollout: polls that fail, leases that end, waits and iteration."""

import asyncio
import time
from typing import Any

import httpx
import pytest

from osmosis_ai.rollout.client import (
    RolloutClient,
    RolloutHandle,
    RolloutProtocolError,
    RolloutUnreachableError,
)
from tests.local_backend.gates import until
from tests.rollout.client.scripted import (
    ADMISSION,
    POLL,
    Scripted,
    Step,
    answered,
    scripted,
    told,
)

PROMPT = [{"role": "user", "content": "2 + 2"}]
MODEL = "http://model/v1"
SAMPLE = {"messages": PROMPT, "reward": 1.0, "label": "4"}


async def follow(server: Scripted, client: RolloutClient) -> RolloutHandle:
    return await client.run_rollout_async(PROMPT, MODEL, "r-1")


async def test_every_change_is_told_once() -> None:
    steps: list[Step] = [
        told("queued"),
        told("running"),
        told("running"),
        told("grading"),
        told("success", sample=SAMPLE),
    ]
    async with scripted(poll=steps) as server, RolloutClient(server.url) as client:
        handle = await follow(server, client)
        assert (handle.status, handle.latest_result, handle.done()) == ("queued", None, False)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(handle.wait_for_running())
            grading = group.create_task(handle.wait_for_grading())
            changes = [change.status async for change in handle]
        assert changes == ["queued", "running", "grading", "success"]
        assert (running.result(), grading.result()) == ("running", "grading")
        result = await handle
        assert result.sample is not None
        assert result.sample.reward == 1.0
        assert handle.latest_result is result
        assert (await handle.wait_for_completion()) is result
        assert await handle.wait_for_running() == "success"
        assert [change.status async for change in handle] == changes
        await until(handle.done)
        assert handle.cancel() is False
    seen = [call.query for call in server.of(POLL)]
    assert seen == [
        f"seen={status}" for status in ("queued", "queued", "running", "running", "grading")
    ]


@pytest.mark.parametrize("fault", ["drop", 502, 503, 504, answered(429, Retry_After="0.1")])
async def test_a_failed_poll_is_repeated(fault: Step) -> None:
    steps: list[Step] = [told("running"), fault, fault, told("success")]
    async with scripted(poll=steps) as server, RolloutClient(server.url) as client:
        assert (await client.run_rollout(PROMPT, MODEL, "r-1")).status == "success"
    assert server.count(POLL) == 4
    assert server.count("POST /rollout") == 1


async def test_a_server_that_is_away_for_a_while() -> None:
    async with scripted(poll=[told("running"), "hang"]) as server:
        port = int(server.url.rpartition(":")[2])
        client = RolloutClient(server.url)
        handle = await follow(server, client)
        await handle.wait_for_running()
    await asyncio.sleep(0.5)
    async with scripted(port, poll=[told("success")]), client:
        assert (await handle).status == "success"


async def test_no_answer_for_as_long_as_the_lease_lasts() -> None:
    lease = ADMISSION | {"polling_lease_timeout_sec": 1.0}
    steps: list[Step] = [told("running"), 503]
    async with scripted(admit=[lease], poll=steps) as server, RolloutClient(server.url) as client:
        handle = await follow(server, client)
        await handle.wait_for_running()
        began = time.monotonic()
        with pytest.raises(RolloutUnreachableError, match="scripted 503"):
            await handle
        assert time.monotonic() - began < 1.5
        waits: list[Any] = [handle.wait_for_grading, handle.wait_for_completion]
        for wait in waits:
            with pytest.raises(RolloutUnreachableError):
                await wait()
        assert handle.status == "running"
    assert server.count(POLL) >= 3


async def test_a_lease_counts_from_the_last_answer() -> None:
    lease = ADMISSION | {"polling_lease_timeout_sec": 1.0}
    away: list[Step] = [503, 503, 503]
    steps = [told("running"), *away[1:], told("grading"), *away, told("success")]
    async with scripted(admit=[lease], poll=steps) as server, RolloutClient(server.url) as client:
        began = time.monotonic()
        assert (await (await follow(server, client))).status == "success"
        assert time.monotonic() - began > 0.95


@pytest.mark.parametrize("status", [401, 403, 404, 422, 500])
async def test_a_refused_poll_is_an_error_for_every_wait(status: int) -> None:
    async with scripted(poll=[status]) as server, RolloutClient(server.url) as client:
        handle = await follow(server, client)
        waits: list[Any] = [handle.wait_for_running, handle.wait_for_completion]
        for wait in waits:
            with pytest.raises(RolloutProtocolError) as caught:
                await wait()
            assert caught.value.status_code == status
    assert server.count(POLL) == 1


async def test_a_redirected_poll_takes_the_token_nowhere() -> None:
    async with scripted() as elsewhere:
        away = answered(307, Location=elsewhere.url + "/rollout/r-1/result")
        async with (
            scripted(poll=[away]) as server,
            httpx.AsyncClient(follow_redirects=True) as http,
            RolloutClient(server.url, http) as client,
        ):
            with pytest.raises(RolloutProtocolError, match="redirect"):
                await (await follow(server, client))
    assert elsewhere.calls == []


@pytest.mark.parametrize(
    "answer",
    [told("success", rollout_id="r-2"), told("done"), answered(200, [1]), answered(200, None)],
)
async def test_a_result_that_means_nothing(answer: Step) -> None:
    async with scripted(poll=[answer]) as server, RolloutClient(server.url) as client:
        with pytest.raises(RolloutProtocolError) as caught:
            await (await follow(server, client))
    assert caught.value.status_code == 200


async def test_a_category_of_a_newer_server_goes_into_the_message() -> None:
    newer = told("failure", err_message="it broke", err_category="cosmic_ray")
    async with scripted(poll=[newer]) as server, RolloutClient(server.url) as client:
        result = await (await follow(server, client))
    assert (result.err_category, result.err_message) == (None, "[cosmic_ray] it broke")


async def test_a_server_that_does_not_wait_is_not_asked_all_the_time() -> None:
    async with scripted(poll=[told("running")]) as server, RolloutClient(server.url) as client:
        await follow(server, client)
        await asyncio.sleep(1.2)
    assert server.count(POLL) <= 7


async def test_cancel_ends_the_polls_only() -> None:
    async with scripted(poll=["hang"]) as server, RolloutClient(server.url) as client:
        handle = await follow(server, client)
        await until(lambda: server.count(POLL) == 1)
        assert handle.cancel() is True
        with pytest.raises(asyncio.CancelledError):
            await handle
        assert handle.done()
    assert [call.route for call in server.calls] == ["POST /rollout", POLL]


async def test_a_wait_that_is_cancelled_leaves_the_polls_alone() -> None:
    async with scripted(poll=["hang"]) as server, RolloutClient(server.url) as client:
        handle = await follow(server, client)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(handle.wait_for_completion(), 0.1)
        assert not handle.done()


async def test_a_cancelled_run_ends_its_polls() -> None:
    async with scripted(poll=["hang"]) as server, RolloutClient(server.url) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await client.run_rollout(PROMPT, MODEL, "r-1")
        assert server.count(POLL) == 1
        tasks = [task.get_name() for task in asyncio.all_tasks()]
        await asyncio.sleep(0)
        assert not any(task.get_name().startswith("polls of") for task in asyncio.all_tasks()), (
            tasks
        )


async def test_a_pause_between_polls_is_cancelled_like_a_poll() -> None:
    async with (
        scripted(poll=[answered(429, Retry_After="30")]) as server,
        RolloutClient(server.url) as client,
    ):
        handle = await follow(server, client)
        await until(lambda: server.count(POLL) == 1)
        await asyncio.sleep(0.1)
        began = time.monotonic()
        await handle.closed()
        assert handle.done()
        assert time.monotonic() - began < 1
    assert server.count(POLL) == 1


async def test_closing_ends_all_polls_and_leaves_a_given_client_open() -> None:
    async with scripted(poll=["hang"]) as server, httpx.AsyncClient() as http:
        client = RolloutClient(server.url, http)
        handles = [await follow(server, client) for _ in range(3)]
        await client.aclose()
        assert all(handle.done() for handle in handles)
        assert not http.is_closed


async def test_another_process_goes_on() -> None:
    async with scripted(poll=[told("running"), "hang"]) as server:
        async with RolloutClient(server.url) as client:
            handle = await follow(server, client)
            await handle.wait_for_running()
        kept = handle.admission
        assert kept is not None
        server.steps[POLL] = [told("success", sample=SAMPLE)]
        async with RolloutClient(server.url) as client:
            assert (await client.resume(kept)).status == "success"
    assert server.count("POST /rollout") == 1
