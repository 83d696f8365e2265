"""The relay as a process of its own, in front of a real unix socket."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "osmosis_ai.rollout.container.relay"]


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Path]:
    """A server on a unix socket that answers what it gets, in capitals."""
    path = tmp_path / "gateway.sock"
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()

    def serve() -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            with client:
                client.sendall(client.recv(100).upper())

    threading.Thread(target=serve, daemon=True).start()
    yield path
    server.shutdown(socket.SHUT_RDWR)
    server.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def start(path: Path, port: int) -> subprocess.CompletedProcess[str]:
    arguments = ["--socket", str(path), "--port", str(port)]
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60)


def ask(port: int, text: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(text)
        return client.recv(100)


def gone(pid: int) -> bool:
    """Whether the process ended; it is nobody's child here, so it may stay a zombie."""
    for _ in range(200):
        try:
            if "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text():
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False


def test_it_answers_at_once_stays_in_the_background_and_ends_when_killed(gateway: Path) -> None:
    port = free_port()
    for text in (b"first", b"second"):  # the port is free again for the next step's
        started = start(gateway, port)
        assert started.returncode == 0, started.stderr
        word, pid = started.stdout.split()
        try:
            assert word == "ready"
            assert ask(port, text) == text.upper()
        finally:
            os.kill(int(pid), signal.SIGTERM)
        assert gone(int(pid))


def test_a_taken_port_is_an_error_and_no_process_stays(gateway: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = int(taken.getsockname()[1])
        started = start(gateway, port)
    assert started.returncode != 0
    assert "ready" not in started.stdout
    assert "in use" in started.stderr
