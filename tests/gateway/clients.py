"""Clients as agents use them."""

from typing import Any, cast

import httpx
from openai import AsyncOpenAI

from osmosis_ai.gateway import Endpoint

PRODUCT = [{"role": "user", "content": "What is 12 x 34?"}]
MULTIPLY_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "multiply",
        "parameters": {
            "type": "object",
            "properties": {"left": {"type": "integer"}, "right": {"type": "integer"}},
            "required": ["left", "right"],
        },
    },
}


def openai_client(endpoint: Endpoint) -> AsyncOpenAI:
    # A client of its own without proxies, and no retries that could hide a failure.
    return AsyncOpenAI(
        base_url=endpoint.url,
        api_key=endpoint.token,
        max_retries=0,
        http_client=cast("Any", httpx.AsyncClient(trust_env=False)),
    )


async def post(
    endpoint: Endpoint,
    body: Any = None,
    *,
    token: str | None = None,
    content: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> httpx.Response:
    bearer = {"Authorization": f"Bearer {token or endpoint.token}"}
    async with httpx.AsyncClient(trust_env=False, timeout=20) as client:
        return await client.post(
            f"{endpoint.url}/chat/completions",
            json=body if content is None else None,
            content=content,
            headers=bearer | (headers or {}),
        )


def chat(model: str, **fields: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": "hi"}], **fields}
