"""An OpenAI client that a whole rollout shares."""

import asyncio
import ssl
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from openai import AsyncOpenAI


def make_client(arguments: dict[str, Any]) -> "AsyncOpenAI":
    """Make an OpenAI client; whoever asks closes it.

    All clients of a process share a TLS context, which costs more to make
    (20 ms of processor time) than the rest. A client that nobody closes leaves
    its sockets to the collector: the OpenAI library would close it in whatever
    event loop runs then, which need not be the one that its connections live in.
    """
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    if "http_client" not in arguments:
        tls = _no_tls() if arguments["base_url"].startswith("http://") else _tls()
        arguments = {**arguments, "http_client": DefaultAsyncHttpxClient(verify=tls)}
    return AsyncOpenAI(**arguments)


@cache
def _tls() -> ssl.SSLContext:
    import httpx

    return httpx.create_ssl_context()


@cache
def _no_tls() -> ssl.SSLContext:
    """A context that trusts nobody, for an endpoint without TLS; made in no time."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class PolicyClient:
    """OpenAI clients with the same arguments, one per event loop.

    Connections belong to the event loop that opened them, and an agent that is
    called synchronously runs in a loop of its own. Has the members of
    ``AsyncOpenAI`` that Strands uses.
    """

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._arguments = arguments
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncOpenAI] = (
            WeakKeyDictionary()
        )

    @property
    def chat(self) -> Any:
        """Chat completions of the running loop's client."""
        return self._client().chat

    @property
    def beta(self) -> Any:
        """Parsed chat completions of the running loop's client."""
        return self._client().beta

    async def close(self) -> None:
        """Close the running loop's client; those of other loops went with their loops."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    def _client(self) -> "AsyncOpenAI":
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            client = self._clients[loop] = make_client(self._arguments)
        return client
