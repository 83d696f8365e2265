"""A backend's own gateway: when it starts, and which endpoint a rollout gets on it."""

import asyncio
import socket
from contextlib import AsyncExitStack
from contextvars import ContextVar
from typing import Any

import httpx
import pytest

from osmosis_ai.gateway import Endpoint, Gateway
from osmosis_ai.rollout import RolloutContext
from osmosis_ai.rollout.backend.gateway import BackendGateway, as_model
from tests.gateway.clients import PRODUCT

BODY = {"model": "m", "messages": PRODUCT}


async def ask(url: str, token: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as client:
        headers = {"Authorization": f"Bearer {token}"}
        return await client.post(f"{url}/chat/completions", json=BODY, headers=headers)


async def test_it_starts_once_and_again_after_its_end() -> None:
    gateway = BackendGateway()
    for _ in range(2):
        async with AsyncExitStack() as stack:
            opened = await asyncio.gather(
                *(
                    stack.enter_async_context(gateway.open(f"r-{n}", "embedded/echo"))
                    for n in range(5)
                )
            )
            assert len({endpoint.url.partition("/rollouts/")[0] for endpoint in opened}) == 1
            for endpoint in opened:
                assert (await ask(endpoint.url, endpoint.token)).status_code == 200
        await gateway.aclose()
        await gateway.aclose()
        with pytest.raises(httpx.ConnectError):
            await ask(opened[0].url, opened[0].token)


SERVED_FOR: ContextVar[str] = ContextVar("served_for", default="nobody")


async def test_it_does_not_live_in_the_context_of_the_rollout_that_starts_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[str] = []
    enter = Gateway.__aenter__

    async def entering(self: Gateway) -> Gateway:
        found.append(SERVED_FOR.get())
        return await enter(self)

    monkeypatch.setattr(Gateway, "__aenter__", entering)
    token = SERVED_FOR.set("the first rollout")
    gateway = BackendGateway()
    async with gateway.open("r", "embedded/echo"):
        assert found == ["nobody"]
    await gateway.aclose()
    SERVED_FOR.reset(token)


async def test_a_port_that_is_taken_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        gateway = BackendGateway(port=taken.getsockname()[1])
        with pytest.raises(OSError, match="address already in use"):
            async with gateway.open("r", "embedded/echo"):
                pytest.fail("it cannot listen")
    async with gateway.open("r", "embedded/echo"):  # free now
        pass
    await gateway.aclose()


async def policy(gateway: BackendGateway, context: RolloutContext | None) -> Endpoint | None:
    async with gateway.policy("r", context) as endpoint:
        return endpoint


@pytest.mark.parametrize("context", [None, RolloutContext(rollout_id="r")])
async def test_without_a_model_there_is_no_endpoint(context: Any) -> None:
    async with BackendGateway() as gateway:
        assert await policy(gateway, context) is None


async def test_a_url_alone_gets_an_endpoint_of_the_backends_own() -> None:
    async with (
        BackendGateway() as gateway,
        Gateway() as callers,
        callers.open("r", "embedded/echo") as outer,
    ):
        context = RolloutContext(outer.url, outer.token, "r")
        async with gateway.policy("r", context) as endpoint:
            assert endpoint is not None
            assert endpoint is not outer
            assert (await ask(endpoint.url, endpoint.token)).status_code == 200
        assert (outer.summary().calls, endpoint.summary().calls) == (1, 1)


async def test_the_contexts_endpoint_is_taken() -> None:
    """One of its own always; another gateway's where sandboxes are on this machine."""
    async with BackendGateway() as gateway, Gateway() as callers:
        async with gateway.open("r", "embedded/echo") as own:
            assert await policy(gateway, RolloutContext(endpoint=own)) is own
        async with callers.open("r", "embedded/echo") as outer:
            assert await policy(gateway, RolloutContext(endpoint=outer)) is outer


async def test_sandboxes_elsewhere_get_an_endpoint_that_they_reach() -> None:
    base = "http://engine.default.svc.cluster.local:8900"
    async with BackendGateway(host="0.0.0.0", advertise_url=base) as gateway, Gateway() as callers:
        async with gateway.open("r", "embedded/echo") as own:
            assert await policy(gateway, RolloutContext(endpoint=own)) is own
            assert own.url == f"{base}/rollouts/r/v1"
            access = as_model(own)
            assert access is not None
            assert (await ask(access.url, access.api_key or "")).status_code == 200
            assert own.summary().calls == 1
        async with callers.open("r", "embedded/echo") as outer:
            async with gateway.policy("r", RolloutContext(endpoint=outer)) as endpoint:
                assert endpoint is not None
                assert endpoint.url == f"{base}/rollouts/r/v1"
                assert (await ask(endpoint.local_url, endpoint.token)).status_code == 200
            assert outer.summary().calls == 1


async def test_a_judge_is_the_backends() -> None:
    async with BackendGateway() as gateway, gateway.judge("r") as judge:
        assert judge is None
    async with BackendGateway("embedded/echo", "k") as gateway, gateway.judge("r") as judge:
        assert judge is not None
        assert judge.kind == "judge"
    with pytest.raises(ValueError, match="judge_api_key= was given without judge="):
        BackendGateway(judge_api_key="k")
