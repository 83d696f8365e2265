"""A backend's own gateway: the endpoints of its rollouts and of their judges."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import Context
from typing import TYPE_CHECKING, Self

from osmosis_ai.common.extras import needs_extra
from osmosis_ai.rollout.context import ModelEndpoint, RolloutContext

if TYPE_CHECKING:
    from osmosis_ai.common.model_calls import Kind
    from osmosis_ai.gateway import Endpoint, Gateway


class BackendGateway:
    """The gateway of one backend, which starts with the first endpoint opened on it.

    Entering it starts it earlier. ``judge`` is the model that graders may ask: the
    base URL of an OpenAI-compatible server, ``embedded/<policy>`` or
    ``litellm/<provider>/<model>``. ``host``, ``port`` and ``advertise_url`` are for
    callers on other machines; see ``Gateway``.

    Raises:
        ValueError: ``judge_api_key`` without ``judge``.
    """

    def __init__(
        self,
        judge: str | None = None,
        judge_api_key: str | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        advertise_url: str | None = None,
    ) -> None:
        if judge_api_key is not None and judge is None:
            raise ValueError("judge_api_key= was given without judge=, the model it is for")
        self._judge = judge
        self._judge_api_key = judge_api_key
        self._host, self._port, self._advertised = host, port, advertise_url
        self._gateway: Gateway | None = None
        self._starting = asyncio.Lock()
        self._resources = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @asynccontextmanager
    async def open(
        self,
        rollout_id: str,
        upstream: str | None,
        api_key: str | None = None,
        *,
        kind: "Kind" = "policy",
    ) -> AsyncIterator["Endpoint"]:
        """Give a rollout an endpoint; see ``Gateway.open``.

        Raises:
            ValueError: an argument is wrong, or the rollout has an open endpoint of
                this kind.
            OSError: the gateway cannot listen where it should.
        """
        gateway = self._gateway or await self._start()
        async with gateway.open(rollout_id, upstream, api_key, kind=kind) as endpoint:
            yield endpoint

    @asynccontextmanager
    async def policy(
        self, rollout_id: str, context: RolloutContext | None
    ) -> AsyncIterator["Endpoint | None"]:
        """The endpoint of a rollout's agent: its context's, else one to its context's URL.

        ``None`` when the context leads to no model.
        """
        if context is not None and context.endpoint and self._is_reached(context.endpoint):
            yield context.endpoint
        elif context is not None and context.chat_completions_url:
            opened = self.open(rollout_id, context.chat_completions_url, context.api_key)
            async with opened as endpoint:
                yield endpoint
        else:
            yield None

    @asynccontextmanager
    async def judge(self, rollout_id: str) -> AsyncIterator["Endpoint | None"]:
        """The endpoint of a rollout's grader, or ``None`` when the backend has no judge.

        Raises:
            ValueError: the judge is not spelled as a model can be.
        """
        if self._judge is None:
            yield None
            return
        opened = self.open(rollout_id, self._judge, self._judge_api_key, kind="judge")
        async with opened as endpoint:
            yield endpoint

    async def aclose(self) -> None:
        """Close the gateway, and every endpoint with it."""
        await self._resources.aclose()
        self._gateway = None

    async def _start(self) -> "Gateway":
        async with self._starting:
            if self._gateway is None:
                # It serves every rollout, so it must not live in the context of the first one.
                try:
                    async with asyncio.TaskGroup() as group:
                        starting = group.create_task(self._enter(), context=Context())
                except ExceptionGroup as failed:
                    raise failed.exceptions[0] from None
                return starting.result()
            return self._gateway

    async def _enter(self) -> "Gateway":
        with needs_extra("gateway", "The model gateway", "aiohttp"):
            from osmosis_ai.gateway import Gateway
        gateway = Gateway(self._host, self._port, advertise_url=self._advertised)
        self._gateway = await self._resources.enter_async_context(gateway)
        return self._gateway

    def _is_reached(self, endpoint: "Endpoint") -> bool:
        """Whether sandboxes reach an endpoint; elsewhere than here, only one of this gateway."""
        if self._advertised is None:
            return True
        return self._gateway is not None and self._gateway.find(endpoint.url) is endpoint


def as_model(endpoint: "Endpoint | None") -> ModelEndpoint | None:
    """An endpoint as code in this process calls it."""
    return None if endpoint is None else ModelEndpoint(endpoint.local_url, endpoint.token)
