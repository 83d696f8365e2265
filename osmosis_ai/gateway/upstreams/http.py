"""An OpenAI-compatible server as the upstream."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    retry_if_result,
    stop_after_attempt,
    wait_exponential,
)

from osmosis_ai.gateway.errors import UpstreamError
from osmosis_ai.gateway.headers import response_headers
from osmosis_ai.gateway.limits import GatewayLimits
from osmosis_ai.gateway.upstreams.base import UpstreamCall, UpstreamReply

_CONNECT_SEC = 10.0
_BACKOFF = wait_exponential(multiplier=0.2, max=2.0)


def make_client(limits: GatewayLimits) -> httpx.AsyncClient:
    """The pooled client that all upstreams of a gateway share.

    The machine's proxy settings hold, but not for loopback, where policy servers live.
    """
    direct: dict[str, httpx.AsyncBaseTransport | None] = {
        f"all://{host}": None for host in ("127.0.0.1", "localhost", "[::1]")
    }
    return httpx.AsyncClient(
        timeout=httpx.Timeout(limits.upstream_idle_sec, connect=_CONNECT_SEC, pool=None),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
        follow_redirects=False,
        mounts=direct,
    )


class HttpUpstream:
    """Sends calls to ``<base URL>/<resource>`` with the real key.

    A call is tried again only when it cannot have been answered: the connection was
    refused, or a 429 or 503 named a bearable ``Retry-After``.
    """

    def __init__(
        self, url: str, *, api_key: str | None, client: httpx.AsyncClient, limits: GatewayLimits
    ) -> None:
        self._base = _checked_base(url)
        self._api_key = _checked_key(api_key)
        self._client = client
        self._limits = limits
        if self._api_key:
            # httpx would let credentials in the URL win over the header.
            self._base = self._base.copy_with(userinfo=b"")
        self._name = str(self._base.copy_with(userinfo=b"", query=None))

    @asynccontextmanager
    async def send(self, call: UpstreamCall) -> AsyncIterator[UpstreamReply]:
        """See ``Upstream.send``."""
        response, attempts = await self._respond(call)
        try:
            if response.is_redirect:
                raise UpstreamError(
                    f"upstream {self._name} answered {response.status_code}, a redirect to "
                    f"{response.headers.get('location')!r}; redirects are not followed, "
                    "so configure the final base URL",
                    code="upstream_redirect",
                    retry=False,
                )
            headers = response_headers(response.headers.multi_items())
            if self._asks_to_wait(response) and attempts > 1:
                headers.append(("x-should-retry", "false"))
            yield UpstreamReply(response.status_code, headers, self._body(response))
        finally:
            await response.aclose()

    async def _respond(self, call: UpstreamCall) -> tuple[httpx.Response, int]:
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(httpx.ConnectError) | retry_if_result(self._asks_to_wait),
            wait=self._wait,
            stop=stop_after_attempt(self._limits.upstream_attempts),
            before_sleep=_drop_response,
            retry_error_callback=_last_result,
        )
        try:
            response: httpx.Response = await retrying(self._once, call)
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            raise self._failure(exc) from exc
        return response, int(retrying.statistics.get("attempt_number", 1))

    async def _once(self, call: UpstreamCall) -> httpx.Response:
        path = self._base.raw_path.partition(b"?")[0].rstrip(b"/") + b"/" + call.resource.encode()
        query = b"&".join(filter(None, [self._base.query, call.query.encode()]))
        url = self._base.copy_with(raw_path=path + b"?" + query if query else path)
        headers = [*call.headers, ("accept-encoding", "identity")]
        if self._api_key:
            headers.append(("authorization", f"Bearer {self._api_key}"))
        request = self._client.build_request(
            call.method, url, headers=headers, content=call.body or None
        )
        return await self._client.send(request, stream=True)

    async def _body(self, response: httpx.Response) -> AsyncIterator[bytes]:
        try:
            async for chunk in response.aiter_bytes():
                yield chunk
        except httpx.HTTPError as exc:
            raise self._failure(exc) from exc

    def _failure(self, exc: Exception) -> UpstreamError:
        reason = str(exc) or type(exc).__name__
        if isinstance(exc, httpx.ConnectError | httpx.ConnectTimeout):
            return UpstreamError(
                f"cannot connect to upstream {self._name}: {reason}; "
                "check that the model server is running and the URL is right",
                code="upstream_unreachable",
                retry=False,
            )
        if isinstance(exc, httpx.TimeoutException):
            return UpstreamError(
                f"upstream {self._name} was silent for {self._limits.upstream_idle_sec} s "
                "(GatewayLimits.upstream_idle_sec)",
                status=504,
                code="upstream_timeout",
                retry=False,
            )
        return UpstreamError(
            f"upstream {self._name} broke off: {reason}", code="upstream_broke_off"
        )

    def _asks_to_wait(self, response: httpx.Response) -> bool:
        if response.status_code not in {429, 503}:
            return False
        seconds = retry_after_sec(response.headers.get("retry-after"))
        return seconds is not None and seconds <= self._limits.max_retry_after_sec

    def _wait(self, state: RetryCallState) -> float:
        if (outcome := state.outcome) and not outcome.failed:
            response: httpx.Response = outcome.result()
            return retry_after_sec(response.headers.get("retry-after")) or 0.0
        return _BACKOFF(state)


async def _drop_response(state: RetryCallState) -> None:
    if (outcome := state.outcome) and not outcome.failed:
        await outcome.result().aclose()


def _last_result(state: RetryCallState) -> httpx.Response:
    assert state.outcome is not None
    response: httpx.Response = state.outcome.result()
    return response


def retry_after_sec(value: str | None, *, now: datetime | None = None) -> float | None:
    """Read a ``Retry-After`` header, seconds or date; ``None`` when it says nothing usable."""
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - (now or datetime.now(UTC))).total_seconds())


def _checked_base(url: str) -> httpx.URL:
    try:
        base = httpx.URL(url)
    except httpx.InvalidURL as exc:
        raise ValueError(f"upstream {url!r} is not a URL: {exc}") from exc
    if not base.host:
        raise ValueError(f"upstream {url!r} names no host")
    path, mark, query = base.raw_path.partition(b"?")
    path = path.rstrip(b"/").removesuffix(b"/chat/completions").rstrip(b"/")
    return base.copy_with(raw_path=path + mark + query, fragment=None)


def _checked_key(api_key: str | None) -> str | None:
    if api_key is None:
        return None
    if not api_key or not api_key.isascii() or not api_key.isprintable() or " " in api_key:
        raise ValueError(
            "api_key must be non-empty printable ASCII without spaces (its value is not shown); "
            "pass None for an upstream that needs no key"
        )
    return api_key
