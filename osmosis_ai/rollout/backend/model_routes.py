"""A backend's own way to models: the policy's endpoint, the judge's, and what they saw."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from osmosis_ai.rollout.context import ModelEndpoint, get_rollout_context
from osmosis_ai.rollout.extras import needs_extra
from osmosis_ai.rollout.types.execution import ExecutionResult

if TYPE_CHECKING:
    from osmosis_ai.gateway import Endpoint, Gateway

UNTRAINABLE = "untrainable"


class ModelRoutes:
    """Opens rollout-scoped endpoints on a gateway of the backend's own, made on first use.

    ``judge`` is the model that graders may ask: the base URL of an
    OpenAI-compatible server, ``embedded/<policy>`` or ``litellm/<provider>/<model>``.
    ``host``, ``port`` and ``advertise_url`` are the gateway's, for callers on other
    machines; see ``Gateway``.

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
        self._gateway: Gateway | None = None
        self._host, self._port, self._advertised = host, port, advertise_url
        self._opening = asyncio.Lock()
        self._resources = AsyncExitStack()

    async def policy(self, rollout_id: str, stack: AsyncExitStack) -> "Endpoint | None":
        """The rollout's policy endpoint: the caller's if it is a gateway's, else one of ours.

        ``None`` when the active rollout context routes nowhere.
        """
        context = get_rollout_context()
        if context is None or not context.chat_completions_url:
            return None
        found = caller_endpoint()
        if found is not None:
            return found
        gateway = await self._running()
        opened = gateway.open(rollout_id, context.chat_completions_url, context.api_key)
        return await stack.enter_async_context(opened)

    async def judge(self, rollout_id: str, stack: AsyncExitStack) -> "Endpoint | None":
        """The endpoint of the rollout's grader, or ``None`` when the backend has no judge.

        Raises:
            ValueError: the judge is not spelled as a model can be.
        """
        if self._judge is None:
            return None
        gateway = await self._running()
        opened = gateway.open(rollout_id, self._judge, self._judge_api_key, kind="judge")
        return await stack.enter_async_context(opened)

    async def from_outside(self, endpoint: "Endpoint", stack: AsyncExitStack) -> ModelEndpoint:
        """Where a caller on another machine finds an endpoint.

        One that a caller's own gateway opened, on this machine's loopback, is reached
        through this gateway; its calls are recorded in both.
        """
        gateway = await self._running()
        if gateway.find(endpoint.url) is endpoint:
            return ModelEndpoint(endpoint.url, endpoint.token)
        opened = await stack.enter_async_context(
            gateway.open(
                endpoint.rollout_id,
                endpoint.url,
                endpoint.token,
                endpoint.limits,
                kind=endpoint.kind,
                capture=endpoint.capture,
            )
        )
        return ModelEndpoint(opened.url, opened.token)

    async def aclose(self) -> None:
        """Close the gateway, and every endpoint with it."""
        await self._resources.aclose()
        self._gateway = None

    async def _running(self) -> "Gateway":
        with needs_extra("gateway", "The model gateway", "aiohttp"):
            from osmosis_ai.gateway import Gateway
        async with self._opening:
            if self._gateway is None:
                gateway = Gateway(self._host, self._port, advertise_url=self._advertised)
                self._gateway = await self._resources.enter_async_context(gateway)
            return self._gateway


def caller_endpoint() -> "Endpoint | None":
    """The gateway's endpoint that the active rollout context routes to, if it is one."""
    context = get_rollout_context()
    if context is None or not context.chat_completions_url:
        return None
    from osmosis_ai.gateway import find_endpoint

    return find_endpoint(context.chat_completions_url)


def as_model(endpoint: "Endpoint | None") -> ModelEndpoint | None:
    """An endpoint as code in this process calls it."""
    return None if endpoint is None else ModelEndpoint(endpoint.url, endpoint.token)


def report_calls(result: ExecutionResult, endpoint: "Endpoint | None", name: str) -> None:
    """Note on a result what its endpoint saw: totals, errors, and limits that were exceeded."""
    if endpoint is None:
        return
    totals = {
        field: value
        for field, value in asdict(endpoint.summary()).items()
        if value not in (None, (), 0) or field in {"calls", "errors"}
    }
    if "limit_events" in totals:
        totals["limit_events"] = [
            {**event, "at": event["at"].isoformat()} for event in totals["limit_events"]
        ]
    result.extra_fields[name] = totals


def mark_untrainable(result: ExecutionResult, endpoint: "Endpoint | None") -> None:
    """Mark a sample whose token ids were asked for, and are not an exact record."""
    if endpoint is None or result.sample is None:
        return
    from osmosis_ai.gateway.metrics import untrainable_reason

    wanted = endpoint.capture.token_ids
    reason = untrainable_reason(endpoint.calls, endpoint.summary(), ids_required=wanted)
    if reason is not None:
        fields: dict[str, Any] = {**result.sample.extra_fields, UNTRAINABLE: reason}
        result.sample = result.sample.model_copy(update={"extra_fields": fields})
