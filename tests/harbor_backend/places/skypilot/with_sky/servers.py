"""Servers that SkyPilot's clients expect, for as long as a test runs: its API's, and a registry."""

import json
import shutil
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

_CONFIG = """version: 0.1
log: {{level: error, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: {root}}}, delete: {{enabled: true}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""


@contextmanager
def api_server(status: str = "healthy") -> Iterator[str]:
    """Answers ``/api/health`` as SkyPilot's API server does; yields its address."""
    from sky.server import constants

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.path == "/api/health"
            body = {"status": status, "api_version": str(constants.API_VERSION)}
            body |= {"version": "0.14.1", "commit": "double", "version_on_disk": "0.14.1"}
            data = json.dumps(body if known else {"detail": "not found"}).encode()
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.send_header(constants.API_VERSION_HEADER, str(constants.API_VERSION))
            self.send_header(constants.VERSION_HEADER, "0.14.1")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def registry(folder: Path) -> Iterator[str]:
    """A container registry of this machine alone; yields ``host:port``."""
    program = shutil.which("docker-registry")
    assert program is not None, "these tests need docker-registry: scripts/test-skypilot.sh"
    port = free_port()
    config = folder / "registry.yml"
    config.write_text(_CONFIG.format(root=folder / "registry", port=port))
    process = subprocess.Popen(
        [program, "serve", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _until_it_answers(f"http://127.0.0.1:{port}/v2/", process)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def free_port(host: str = "127.0.0.1") -> int:
    """A port that nobody listens on at the moment."""
    with socket.create_server((host, 0)) as listener:
        return int(listener.getsockname()[1])


def _until_it_answers(url: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError:
            assert process.poll() is None, f"it ended with exit code {process.returncode}"
            assert time.monotonic() < deadline, f"{url} does not answer"
            time.sleep(0.05)
