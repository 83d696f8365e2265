"""A supervisor as a real process, spoken to in frames over a unix socket."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from osmosis_ai.rollout.container.supervisor import frames
from tests.rollout.container.sandbox_process import ROOT

# As in a sandbox: the package stands alone on the path.
BOOT = "import sys; sys.path.insert(0, {folder!r})\nfrom supervisor.main import main; main()"


class Host:
    """The host's end: opens channels and gathers what comes back on each."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.connection.settimeout(20)
        self.inbox = b""
        self.last = 0

    def receive(self) -> tuple[int, int, bytes]:
        """The next frame."""
        channel, kind, length = frames.HEADER.unpack(self._take(frames.HEADER.size))
        assert length <= frames.MAX_FRAME
        return channel, kind, self._take(length)

    def open(self, **request: Any) -> int:
        """Begin an operation; returns its channel."""
        self.last += 1
        self.send(self.last, frames.OPEN, json.dumps(request).encode())
        return self.last

    def execute(self, *argv: str, **request: Any) -> int:
        """Begin a command."""
        limits = {"limit": 100_000, "result_limit": 0}
        return self.open(**{"op": "exec", "argv": argv, **limits, **request})

    def send(self, channel: int, kind: int, payload: bytes = b"") -> None:
        """Send one frame."""
        self.connection.sendall(frames.pack(channel, kind, payload))

    def finish(self, channel: int) -> tuple[dict[str, Any], dict[int, bytes]]:
        """Receive until the channel is done; returns its answer and its streams."""
        streams: dict[int, bytes] = {}
        while True:
            got, kind, payload = self.receive()
            assert got == channel
            if kind == frames.DONE:
                return json.loads(payload), streams
            streams[kind] = streams.get(kind, b"") + payload

    def _take(self, size: int) -> bytes:
        while len(self.inbox) < size:
            data = self.connection.recv(65536)
            assert data, "the supervisor ended"
            self.inbox += data
        taken, self.inbox = self.inbox[:size], self.inbox[size:]
        return taken


@contextmanager
def running_supervisor(
    folder: Path, *facts: str, env: dict[str, str] | None = None
) -> Iterator[Host]:
    """A supervisor's host, which has said that it is ready; it runs in ``folder``.

    ``facts`` are told it of its sandbox, ``env`` is its environment instead of this one.
    """
    path = folder / "host.sock"
    boot = BOOT.format(folder=str(ROOT / "osmosis_ai/rollout/container"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        command = [sys.executable, "-I", "-c", boot, str(path), *facts]
        with subprocess.Popen(command, cwd=folder, env=env) as process:
            connection, _ = listener.accept()
            with connection:
                host = Host(connection)
                channel, kind, payload = host.receive()
                assert (channel, kind) == (0, frames.READY)
                assert json.loads(payload) == {"cwd": str(folder)}
                yield host
            assert process.wait(timeout=20) == 0  # it ends with its connection
