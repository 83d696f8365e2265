"""Whether a sandbox reaches the gateway, and if not, at which hop it ends.

Runs inside the sandbox, as text after ``python -c``, before anything else does.
The standard library is all it needs. It reads the rollout's base URL from its
argument and the token from its environment, and prints one JSON object:
``{"hop": null}``, or the hop that failed and what was seen there.
"""

import http.client
import json
import os
import socket
import ssl
import sys
from urllib.parse import urlsplit

TOKEN_VARIABLE = "OSMOSIS_PROBE_TOKEN"
TIMEOUT_SEC = 10.0
_SHOWN = 200


def probe(url: str, token: str) -> tuple[str, str] | None:
    """Walk to the gateway; ``None`` when it answers, else the hop and what happened there."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        return "name", f"{host!r} does not resolve: {error}"
    try:
        stream = socket.create_connection((host, port), timeout=TIMEOUT_SEC)
    except OSError as error:
        addresses = ", ".join(sorted({str(entry[4][0]) for entry in found}))
        return "connect", f"no connection to {addresses} port {port}: {error or 'timed out'}"
    try:
        if parts.scheme == "https":
            try:
                stream = ssl.create_default_context().wrap_socket(stream, server_hostname=host)
            except OSError as error:
                return "tls", f"no TLS with {host}:{port}: {error}"
        return _ask(stream, parts.netloc.rpartition("@")[2], f"{parts.path}/ping", token)
    finally:
        stream.close()


def _ask(stream: socket.socket, host: str, path: str, token: str) -> tuple[str, str] | None:
    request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n"
    try:
        stream.sendall(f"{request}Accept: */*\r\nConnection: close\r\n\r\n".encode())
        answer = http.client.HTTPResponse(stream)
        answer.begin()
        body = answer.read(65536)
    except (OSError, http.client.HTTPException) as error:
        return "http", f"no HTTP answer: {type(error).__name__}: {error}"
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if isinstance(document, dict) and document.get("object") == "gateway.pong":
        return None
    shown = body[:_SHOWN].decode(errors="replace").strip()
    refusal = document.get("error") if isinstance(document, dict) else None
    if isinstance(refusal, dict) and "code" in refusal and "message" in refusal:
        return "gateway", f"it answers {answer.status} {refusal['code']}: {refusal['message']}"
    return "http", f"what answers is not the gateway: {answer.status}, {shown!r}"


def main() -> None:
    """Probe, and print the result."""
    failed = probe(sys.argv[1], os.environ.get(TOKEN_VARIABLE, ""))
    hop, detail = failed or (None, "")
    print(json.dumps({"hop": hop, "detail": detail}))


if __name__ == "__main__":
    main()
