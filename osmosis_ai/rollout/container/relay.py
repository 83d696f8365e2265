"""Brings the gateway's unix socket to the sandbox's own loopback.

Agent code then sees an ordinary ``http://127.0.0.1:<port>/v1``. Bytes pass as
they are; the socket on the other side is what scopes a call to its rollout.
"""

import contextlib
import socket
import sys
import threading
from types import TracebackType
from typing import Self

_CHUNK = 64 * 1024


class Relay:
    """Listens on a loopback port in threads of its own, until the block is left.

    Threads, not tasks: a workflow that blocks its event loop must not starve
    the model calls of the tools it runs.
    """

    def __init__(self, socket_path: str, port: int = 0) -> None:
        self._socket_path = socket_path
        self._server = socket.create_server(("127.0.0.1", port), backlog=128)

    @property
    def url(self) -> str:
        """The OpenAI-style base URL to give to the agent."""
        return f"http://127.0.0.1:{self._server.getsockname()[1]}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, name="osmosis-relay", daemon=True).start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:  # the server socket was closed
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as gateway:
            try:
                gateway.connect(self._socket_path)
            except OSError as exc:
                print(f"osmosis relay: gateway unreachable: {exc}", file=sys.stderr, flush=True)
                return
            answers = threading.Thread(target=_pump, args=(gateway, client), daemon=True)
            answers.start()
            _pump(client, gateway)
            answers.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Copy bytes until either side ends, then end the other."""
    with contextlib.suppress(OSError):
        while chunk := source.recv(_CHUNK):
            target.sendall(chunk)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
