"""Connections of a workflow that pass the rollout's endpoint, seen over real sockets."""

import asyncio
import socket
import threading
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from aiohttp import web
from openai import AsyncOpenAI

from osmosis_ai.rollout import (
    AgentWorkflow,
    AgentWorkflowConfig,
    AgentWorkflowContext,
    ExecutionRequest,
    LocalBackend,
    RolloutContext,
    RolloutStatus,
)
from osmosis_ai.rollout.direct_calls import (
    DirectCalls,
    direct_call_warning,
    watching_direct_calls,
)
from tests.rollout.policy import Policy


@asynccontextmanager
async def serve_provider() -> AsyncIterator[str]:
    """A server that is not the rollout's endpoint."""

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"ok": True})

    app = web.Application()
    app.router.add_get("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def netloc(url: str) -> str:
    return urlsplit(url).netloc


async def with_httpx(url: str) -> None:
    async with httpx.AsyncClient() as client:
        assert (await client.get(url)).json() == {"ok": True}


async def with_urllib(url: str) -> None:
    with await asyncio.to_thread(urllib.request.urlopen, url) as response:
        assert response.status == 200


async def with_a_task(url: str) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(with_httpx(url))


@pytest.mark.parametrize("call", [with_httpx, with_urllib, with_a_task])
async def test_a_direct_call_is_named(
    call: Callable[[str], Awaitable[None]], policy: Policy
) -> None:
    context = RolloutContext(policy.url)
    async with serve_provider() as provider:
        with watching_direct_calls(context) as watch:
            await call(provider)
        await call(provider)
    for gateway_calls in (0, None):
        warning = direct_call_warning(context, watch, gateway_calls)
        assert warning is not None
        assert f"connected to {netloc(provider)} and never called" in warning
        assert policy.url in warning
    assert len(watch.connections) == 1
    assert direct_call_warning(context, watch, 3) is None


async def test_calls_through_the_endpoint_are_not_direct(policy: Policy) -> None:
    context = RolloutContext(policy.url)
    async with serve_provider() as provider:
        with watching_direct_calls(context) as watch:
            await with_httpx(provider)
            async with AsyncOpenAI(base_url=policy.url, api_key="k") as client:
                await client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": "hi"}]
                )
    assert watch.reached_endpoint()
    assert direct_call_warning(context, watch) is None
    assert [f"{host}:{port}" for host, port in watch.elsewhere()] == [netloc(provider)]


async def test_rollouts_side_by_side_are_told_apart(policy: Policy) -> None:
    """The gateway of this process, and other rollouts, connect too."""
    context = RolloutContext(policy.url)

    async def rollout(url: str | None) -> DirectCalls:
        with watching_direct_calls(context) as watch:
            await asyncio.sleep(0)
            if url is not None:
                await with_httpx(url)
        return watch

    async with serve_provider() as one, serve_provider() as two:
        first, second, third, _ = await asyncio.gather(
            rollout(one), rollout(two), rollout(None), with_httpx(two)
        )
    assert [port for _, port in first.connections] == [urlsplit(one).port]
    assert [port for _, port in second.connections] == [urlsplit(two).port]
    assert third.connections == {}
    assert direct_call_warning(context, third, 0) is None


async def test_the_name_that_was_looked_up_is_told(policy: Policy) -> None:
    context = RolloutContext(policy.url)
    async with serve_provider() as provider:
        named = provider.replace("127.0.0.1", "localhost")
        with watching_direct_calls(context) as watch:
            await with_httpx(named)
    warning = direct_call_warning(context, watch, 0)
    assert warning is not None
    assert f"localhost (127.0.0.1:{urlsplit(provider).port})" in warning


def test_other_sockets_are_no_calls(tmp_path: Path) -> None:
    context = RolloutContext("http://127.0.0.1:9/v1")
    path = f"{tmp_path}/s"
    with socket.socket(socket.AF_UNIX) as server, watching_direct_calls(context) as watch:
        server.bind(path)
        server.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            datagrams.connect(("127.0.0.1", 9))
    assert watch.connections == {}


def test_a_thread_of_its_own_is_not_attributed() -> None:
    """It might be anybody's; what cannot be attributed is not reported."""
    context = RolloutContext("http://127.0.0.1:9/v1")
    with socket.create_server(("127.0.0.1", 0)) as server, watching_direct_calls(context) as watch:
        thread = threading.Thread(target=socket.create_connection, args=(server.getsockname(),))
        thread.start()
        thread.join()
    assert watch.connections == {}


def watched(endpoint: tuple[str, int], *connections: tuple[str, int]) -> DirectCalls:
    return DirectCalls(endpoint, dict.fromkeys(connections))


@pytest.mark.parametrize(
    ("url", "connection", "looked_up", "direct"),
    [
        ("http://localhost:80/v1", ("::1", 80), None, False),
        ("http://localhost:80/v1", ("127.0.0.1", 81), None, True),
        ("http://127.0.0.1:80/v1", ("10.0.0.1", 80), None, True),
        ("https://gateway.example/v1", ("10.0.0.1", 443), "gateway.example", False),
        ("https://gateway.example/v1", ("10.0.0.1", 443), "provider.example", True),
        ("https://gateway.example/v1", ("gateway.example", 443), None, False),
        ("https://gateway.example/v1", ("10.0.0.1", 80), None, True),
    ],
)
def test_which_address_is_the_endpoint(
    url: str, connection: tuple[str, int], looked_up: str | None, direct: bool
) -> None:
    context = RolloutContext(url)
    with watching_direct_calls(context) as watch:
        watch.connections[connection] = None
        if looked_up is not None:
            watch.lookups[connection[1]] = {looked_up}
    warning = direct_call_warning(context, watch)
    assert (warning is not None) is direct
    if warning is not None and looked_up is not None:
        assert f"provider.example ({connection[0]}:443)" in warning


def test_many_connections_are_counted_and_a_rollout_without_an_endpoint_is_left_alone() -> None:
    many = watched(("127.0.0.1", 9), *(("10.0.0.1", port) for port in range(1, 9)))
    told = direct_call_warning(RolloutContext("http://127.0.0.1:9/v1"), many, 0)
    assert told is not None
    assert "10.0.0.1:5 and 3 more and never" in told
    assert direct_call_warning(RolloutContext(), many, 0) is None


class Bypass(AgentWorkflow[AgentWorkflowConfig]):
    """Calls a provider that its prompt names."""

    async def run(self, ctx: AgentWorkflowContext[AgentWorkflowConfig]) -> list[dict[str, str]]:
        """Call it, once."""
        await with_httpx(ctx.prompt[0]["content"])
        return ctx.prompt


async def test_a_rollout_that_bypasses_its_endpoint_succeeds_with_a_warning(
    policy: Policy, artifact_root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve_provider() as provider:
        request = ExecutionRequest(
            id="r-1", prompt=[{"role": "user", "content": provider}], grade=False
        )
        with RolloutContext(policy.url, rollout_id="r-1"):
            outcome = await LocalBackend(workflow=Bypass).execute(request)
    assert outcome.workflow.status is RolloutStatus.SUCCESS
    (warning,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert "r-1" in warning.getMessage()
    assert f"connected to {netloc(provider)} and never called" in warning.getMessage()
