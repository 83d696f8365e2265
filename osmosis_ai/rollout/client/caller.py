"""HTTP to one rollout server."""

import json
from typing import Any
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from osmosis_ai.common.retry_after import retry_after_sec
from osmosis_ai.rollout.client.errors import RolloutProtocolError

NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
"""The request did not leave this machine, so repeating it repeats nothing."""

_CONNECT_SEC = 10.0


class Caller:
    """Sends requests with the server's key, and follows no redirect: the key is for this host.

    Raises:
        ValueError: the URL is not http or https, or the key fits no header.
    """

    def __init__(self, url: str, http: httpx.AsyncClient, api_key: str | None) -> None:
        parsed = httpx.URL(url)
        if parsed.scheme not in {"http", "https"} or not parsed.host:
            raise ValueError(f"url must begin with http:// or https:// and a host, got {url!r}")
        if api_key is not None and not (api_key.strip() and api_key.isascii()):
            raise ValueError("api_key must be ASCII and not blank; pass None to send no key")
        self._url = url.rstrip("/")
        self._http = http
        self._headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}

    async def get(
        self, path: str, headers: dict[str, str] | None = None, *, read_sec: float = 30.0
    ) -> httpx.Response:
        """GET; ``read_sec`` bounds the wait for the next bytes of the answer."""
        return await self._http.get(
            self._url + path,
            headers=self._headers | (headers or {}),
            timeout=httpx.Timeout(read_sec, connect=_CONNECT_SEC),
            follow_redirects=False,
        )

    async def post(self, path: str, body: bytes, *, read_sec: float = 30.0) -> httpx.Response:
        """POST a body of JSON."""
        return await self._http.post(
            self._url + path,
            content=body,
            headers=self._headers | {"Content-Type": "application/json"},
            timeout=httpx.Timeout(read_sec, connect=_CONNECT_SEC),
            follow_redirects=False,
        )

    async def health(self) -> dict[str, Any]:
        """GET /health."""
        return accepted("GET /health", await self.get("/health"))


def segment(rollout_id: str) -> str:
    """An id within a path."""
    return quote(rollout_id, safe="")


def accepted(asked: str, response: httpx.Response, status: int = 200) -> dict[str, Any]:
    """The JSON object of an answer with the expected status.

    Raises:
        RolloutProtocolError: another status, or not a JSON object.
    """
    if response.status_code != status:
        raise refused(asked, response)
    try:
        answer = response.json()
    except ValueError as exc:
        raise RolloutProtocolError(f"{asked}: not JSON: {exc}", status_code=status) from exc
    if not isinstance(answer, dict):
        kind = type(answer).__name__
        raise RolloutProtocolError(f"{asked}: a JSON {kind}, not an object", status_code=status)
    return answer


def parsed[Model: BaseModel](
    model: type[Model], asked: str, fields: dict[str, Any], status: int = 200
) -> Model:
    """The answer as the protocol knows it.

    Raises:
        RolloutProtocolError: it is another.
    """
    try:
        return model.model_validate(fields)
    except ValidationError as exc:
        raise RolloutProtocolError(f"{asked}: {exc}"[:2000], status_code=status) from exc


def refused(asked: str, response: httpx.Response) -> RolloutProtocolError:
    """The error that an unexpected answer is, with what the server says about it."""
    status = response.status_code
    why = _detail(response)
    if response.is_redirect:
        why = "a redirect, which is never followed; give the server's own URL"
    return RolloutProtocolError(
        f"{asked} was answered {status}: {why}"[:2000],
        status_code=status,
        retry_after_sec=retry_after_sec(response.headers.get("Retry-After")),
    )


def _detail(response: httpx.Response) -> str:
    try:
        answer = response.json()
    except ValueError:
        return "no reason given"
    detail = answer.get("detail") if isinstance(answer, dict) else answer
    if isinstance(detail, list):
        # Servers that validate with FastAPI send the input back, which may hold keys.
        detail = [
            {name: value for name, value in problem.items() if name in {"loc", "msg", "type"}}
            for problem in detail
            if isinstance(problem, dict)
        ]
    return detail if isinstance(detail, str) else json.dumps(detail)
