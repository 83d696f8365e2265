"""A key-value store over HTTP, held in memory. `store.py check` asks a running one for its keys."""

import json
import sys
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

PORT = 8080
PREFIX = "/keys/"

VALUES: dict[str, object] = {
    "user/1003": {"name": "Wei Chen", "email": "WEI@example.org", "active": "Y"},
    "user/0999": {"name": "Test Account", "email": "test@example.org", "active": True},
    "user/tmp/1": {"name": "left over"},
    "users": 3,
    "config/retention_days": 30,
    "config/banner": {"text": "Maintenance on Sunday", "until": "2026-04-01"},
    "session/8f2c": {"user": "1003", "token": "opaque"},
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def key(self) -> str | None:
        path = unquote(self.path)
        return path[len(PREFIX) :] if path.startswith(PREFIX) else None

    def do_GET(self) -> None:
        if self.path == "/keys":
            self.reply(200, sorted(VALUES))
        elif (key := self.key()) in VALUES:
            self.reply(200, VALUES[key])
        else:
            self.reply(404, {"error": f"no value at {self.path}"})

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        key = self.key()
        if not key:
            self.reply(404, {"error": f"not a key: {self.path}"})
            return
        try:
            value = json.loads(body)
        except ValueError:
            self.reply(400, {"error": "the body is not JSON"})
            return
        VALUES[key] = value
        self.reply(200, {"key": key})

    def do_DELETE(self) -> None:
        key = self.key()
        if key in VALUES:
            del VALUES[key]
            self.reply(200, {"key": key})
        else:
            self.reply(404, {"error": f"no value at {self.path}"})


if __name__ == "__main__":
    if sys.argv[1:] == ["check"]:
        urllib.request.urlopen(f"http://127.0.0.1:{PORT}/keys", timeout=3).close()
    else:
        ThreadingHTTPServer(("", PORT), Handler).serve_forever()
