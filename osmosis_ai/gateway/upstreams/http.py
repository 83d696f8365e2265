"""An OpenAI-compatible server as the upstream."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import aiohttp
import anyio
from yarl import URL

from osmosis_ai.common.retry_after import retry_after_sec
from osmosis_ai.gateway.errors import UpstreamError
from osmosis_ai.gateway.headers import response_headers
from osmosis_ai.gateway.limits import GatewayLimits
from osmosis_ai.gateway.upstreams.addresses import checked_base, checked_key, proxy_for
from osmosis_ai.gateway.upstreams.base import UpstreamCall, UpstreamReply

_CONNECT_SEC = 10.0
_IDLE_CONNECTION_SEC = 4.0
"""Below the 5 s after which uvicorn, under many model servers, closes idle connections:
a call must not be sent on a connection that is being closed."""

_BUSY = frozenset({429, 503})
_FIRST_PAUSE_SEC = 0.2
_LONGEST_PAUSE_SEC = 2.0


def make_session() -> aiohttp.ClientSession:
    """The pooled client that all HTTP upstreams of a gateway share."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_CONNECTION_SEC),
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=("User-Agent", "Accept", "Content-Type"),
    )


class HttpUpstream:
    """Sends calls to ``<base URL>/<resource>`` with the real key.

    A call is tried again only when it cannot have been answered: the connection was
    refused, or a 429 or 503 named a bearable ``Retry-After``.

    Raises:
        ValueError: the URL or the key cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None,
        session: aiohttp.ClientSession,
        limits: GatewayLimits,
        responses: dict[str, bool],
    ) -> None:
        base = checked_base(url)
        self._headers = [("Accept-Encoding", "identity")]
        if key := checked_key(api_key):
            # Credentials in the URL would win over the header.
            base = base.with_user(None)
            self._headers.append(("Authorization", f"Bearer {key}"))
        self._base = base
        self._name = str(base.with_user(None).with_query(None))
        self._session = session
        self._limits = limits
        self._responses = responses
        self._proxy = proxy_for(base)
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=_CONNECT_SEC, sock_read=limits.upstream_idle_sec
        )

    @property
    def serves_responses(self) -> bool | None:
        """See ``Upstream``; known of a base URL for as long as the gateway lives."""
        return self._responses.get(self._name)

    @serves_responses.setter
    def serves_responses(self, value: bool | None) -> None:
        if value is None:
            self._responses.pop(self._name, None)
        else:
            self._responses[self._name] = value

    @asynccontextmanager
    async def send(self, call: UpstreamCall) -> AsyncIterator[UpstreamReply]:
        """See ``Upstream.send``."""
        response, tries = await self._respond(call)
        try:
            if 300 <= response.status < 400 and "Location" in response.headers:
                raise UpstreamError(
                    f"upstream {self._name} answered {response.status}, a redirect to "
                    f"{response.headers['Location']!r}; redirects are not followed, "
                    "so configure the final base URL",
                    told="the model server sent a redirect; redirects are not followed, so "
                    "its operator must configure the final base URL",
                    code="upstream_redirect",
                    retry=False,
                )
            headers = response_headers(response.headers.items())
            if tries > 1 and self._asked_sec(response) is not None:
                headers.append(("x-should-retry", "false"))
            yield UpstreamReply(response.status, headers, self._body(response))
        finally:
            response.close()

    async def _respond(self, call: UpstreamCall) -> tuple[aiohttp.ClientResponse, int]:
        """Return the answer, and how many tries it took.

        Raises:
            UpstreamError: there is none.
        """
        # Not tenacity's loop, which costs every call 30 µs, also the many that need no second try.
        pause = _FIRST_PAUSE_SEC
        for tries in count(1):
            last = tries >= self._limits.upstream_attempts
            try:
                response = await self._once(call)
            except aiohttp.ClientConnectorError as exc:
                if last:
                    raise self._failure(exc) from exc
                await anyio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SEC)
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as exc:
                raise self._failure(exc) from exc
            else:
                asked = self._asked_sec(response)
                if asked is None or last:
                    return response, tries
                response.close()
                await anyio.sleep(asked)
        raise AssertionError("unreachable")

    async def _once(self, call: UpstreamCall) -> aiohttp.ClientResponse:
        query = "&".join(filter(None, [self._base.raw_query_string, call.query]))
        path = f"{self._base.raw_path.rstrip('/')}/{call.resource}"
        target = f"{path}?{query}" if query else path
        return await self._session.request(
            call.method,
            self._base.join(URL(target, encoded=True)),
            headers=[*call.headers, *self._headers],
            data=call.body or None,
            allow_redirects=False,
            timeout=self._timeout,
            proxy=self._proxy,
        )

    async def _body(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        try:
            async for chunk in response.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, TimeoutError, OSError) as exc:
            raise self._failure(exc) from exc

    def _asked_sec(self, response: aiohttp.ClientResponse) -> float | None:
        """How long a busy upstream asks to wait, if it asks and that can be borne."""
        if response.status not in _BUSY:
            return None
        seconds = retry_after_sec(response.headers.get("Retry-After"))
        bearable = seconds is not None and seconds <= self._limits.max_retry_after_sec
        return seconds if bearable else None

    def _failure(self, exc: Exception) -> UpstreamError:
        reason = str(exc) or type(exc).__name__
        if isinstance(exc, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
            return UpstreamError(
                f"cannot connect to upstream {self._name}: {reason}; "
                "check that the model server is running and the URL is right",
                told="cannot connect to the model server; its operator must "
                "check that the model server is running, and finds its address in the record",
                code="upstream_unreachable",
                retry=False,
            )
        if isinstance(exc, TimeoutError):
            return UpstreamError(
                f"upstream {self._name} was silent for {self._limits.upstream_idle_sec} s "
                "(GatewayLimits.upstream_idle_sec)",
                status=504,
                told=f"the model server was silent for {self._limits.upstream_idle_sec} s "
                "(GatewayLimits.upstream_idle_sec)",
                code="upstream_timeout",
                retry=False,
                limit="upstream_idle_sec",
            )
        return UpstreamError(
            f"upstream {self._name} broke off: {reason}",
            told="the model server broke off; the record of this call says why",
            code="upstream_broke_off",
        )
