"""Brings the gateway's unix socket to the sandbox's own loopback.

Agent code then sees an ordinary ``http://127.0.0.1:<port>/v1``. Bytes pass as
they are; the socket on the other side is what scopes a call to its rollout.

``python -m osmosis_ai.rollout.container.relay --socket PATH --port PORT`` leaves
one in the background, for agents that this package does not run itself.
"""

import argparse
import contextlib
import os
import signal
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
        self._warned = False

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
                self._warn(f"osmosis relay: gateway unreachable: {exc}")
                return
            answers = threading.Thread(target=_pump, args=(gateway, client), daemon=True)
            answers.start()
            _pump(client, gateway)
            answers.join()

    def _warn(self, text: str) -> None:
        """Say it once: whoever connects could fill a log with it."""
        if not self._warned:
            self._warned = True
            print(text, file=sys.stderr, flush=True)


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Copy bytes until either side ends, then end the other."""
    with contextlib.suppress(OSError):
        while chunk := source.recv(_CHUNK):
            target.sendall(chunk)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def main(argv: list[str] | None = None) -> None:
    """Listen, print ``ready <pid>``, and go on in the background until killed."""
    parser = argparse.ArgumentParser(prog="osmosis-relay", description=main.__doc__)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--port", type=int, required=True)
    args = parser.parse_args(argv)
    relay = Relay(args.socket, args.port)
    # Only now: whoever reads the answer can connect at once.
    if pid := os.fork():
        print(f"ready {pid}", flush=True)
        return
    os.setsid()
    # Whoever waits for the end of the starter's output must not wait for this process.
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    with relay:
        while True:
            signal.pause()


if __name__ == "__main__":
    main()
