"""The Docker Engine API over its socket: the few calls that a trial makes."""

import asyncio
import os
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import httpx

from harbor_backend.errors import HarborBackendError
from harbor_backend.places.docker.streams import demultiplexed, plain_text

_TIMEOUT = httpx.Timeout(120, connect=5)
_DEFAULT_SOCKET = "/var/run/docker.sock"
_MAX_LOG_BYTES = 64 * 1024


class EngineError(HarborBackendError, RuntimeError):
    """The engine refused or failed a call; ``status`` is its HTTP code, 0 without an answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Engine:
    """One connection pool to one engine."""

    def __init__(self, host: str | None = None) -> None:
        self.host = host or os.environ.get("DOCKER_HOST") or f"unix://{_DEFAULT_SOCKET}"
        scheme, _, address = self.host.partition("://")
        if scheme == "unix":
            transport = httpx.AsyncHTTPTransport(uds=address)
            base_url = "http://docker"
        elif scheme in {"tcp", "http"}:
            transport = httpx.AsyncHTTPTransport()
            base_url = f"http://{address}"
        else:
            raise EngineError(f"DOCKER_HOST={self.host!r} is not supported: use unix:// or tcp://")
        self._http = httpx.AsyncClient(transport=transport, base_url=base_url, timeout=_TIMEOUT)

    @property
    def is_local(self) -> bool:
        """Whether directories of this machine can be mounted into its containers."""
        return self.host.startswith("unix://")

    async def call(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        content: bytes | AsyncIterator[bytes] | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Return the decoded answer of one call, ``None`` when it has no body.

        Raises:
            EngineError: the engine does not answer, or answers with an error.
        """
        try:
            response = await self._http.request(
                method,
                path,
                json=json,
                params=params,
                content=content,
                timeout=_TIMEOUT if timeout is None else httpx.Timeout(timeout, connect=5),
            )
        except httpx.HTTPError as exc:
            raise self._unreachable(exc) from exc
        if response.is_error:
            raise EngineError(_reason(response), response.status_code)
        is_json = response.headers.get("content-type", "").startswith("application/json")
        return response.json() if is_json and response.content else None

    async def stream(
        self, method: str, path: str, *, json: Any = None, params: Mapping[str, Any] | None = None
    ) -> AsyncGenerator[bytes]:
        """Yield the raw chunks of an answer that may last as long as its command."""
        timeout = httpx.Timeout(None, connect=5)
        try:
            async with self._http.stream(
                method, path, json=json, params=params, timeout=timeout
            ) as response:
                if response.is_error:
                    await response.aread()
                    raise EngineError(_reason(response), response.status_code)
                async for chunk in response.aiter_raw():
                    yield chunk
        except httpx.HTTPError as exc:
            raise self._unreachable(exc) from exc

    async def create(self, name: str, config: Mapping[str, Any]) -> str:
        """Create a container and return its id."""
        answer = await self.call("POST", "/containers/create", json=config, params={"name": name})
        identifier: str = answer["Id"]
        return identifier

    async def start(self, container: str) -> None:
        """Start a created container."""
        await self.call("POST", f"/containers/{container}/start")

    async def remove(self, container: str) -> bool:
        """Kill and remove a container with its anonymous volumes; gone already is fine.

        Returns whether it is known to be gone: somebody else may be removing it.
        """
        try:
            await self.call(
                "DELETE", f"/containers/{container}", params={"force": "true", "v": "true"}
            )
        except EngineError as exc:
            if exc.status not in {404, 409}:  # 409: its removal is under way
                raise
            return exc.status == 404
        return True

    async def inspect(self, container: str) -> dict[str, Any]:
        """Return the engine's record of a container."""
        answer: dict[str, Any] = await self.call("GET", f"/containers/{container}/json")
        return answer

    async def logs(self, container: str, tail: int = 20) -> str:
        """Return the last lines that a container's first process printed, as plain text."""
        params = {"stdout": "true", "stderr": "true", "tail": str(tail)}
        stream = self.stream("GET", f"/containers/{container}/logs", params=params)
        printed = bytearray()
        async with aclosing(stream) as chunks, aclosing(demultiplexed(chunks)) as frames:
            async for _, data in frames:
                printed += data
                del printed[:-_MAX_LOG_BYTES]
        return plain_text(bytes(printed))

    async def exec_detached(self, container: str, command: Sequence[str], user: str) -> str:
        """Start a command in a running container and leave it alone; returns the id of it."""
        config = {"Cmd": list(command), "User": user}
        created = await self.call("POST", f"/containers/{container}/exec", json=config)
        identifier = str(created["Id"])
        await self.call("POST", f"/exec/{identifier}/start", json={"Detach": True})
        return identifier

    async def aclose(self) -> None:
        """Close the pool."""
        await self._http.aclose()

    def _unreachable(self, exc: httpx.HTTPError) -> EngineError:
        return EngineError(
            f"The Docker engine at {self.host} does not answer ({type(exc).__name__}: {exc}). "
            "Start it (`make setup` does), or point DOCKER_HOST at one that runs"
        )


def _reason(response: httpx.Response) -> str:
    try:
        return str(response.json()["message"])
    except (ValueError, KeyError, TypeError):
        return response.text[:2000] or f"HTTP {response.status_code}"


_shared: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Engine] = weakref.WeakKeyDictionary()


def shared_engine() -> Engine:
    """Return the engine client of the running loop; all its trials share one pool."""
    loop = asyncio.get_running_loop()
    if loop not in _shared:
        _shared[loop] = Engine()
    return _shared[loop]
