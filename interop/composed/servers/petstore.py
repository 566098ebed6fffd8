"""A service over HTTP that knows nothing of MCP, and writes each request in a ledger: `python petstore.py PORT`."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import ledger


class Service(BaseHTTPRequestHandler):
    """Pets. A pet's number is the request's key."""

    protocol_version = "HTTP/1.1"
    # Headers and body are two packets, and the second would wait for the acknowledgement of the first.
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if not url.path.startswith("/v1/pets/"):
            return self._answer(404, {"error": "there is no such thing"})
        key = int(url.path.rpartition("/")[2])
        gated = parse_qs(url.query).get("gated") == ["true"]
        return self._answer(200, {"id": key, "name": ledger.run("looked", key, gated)})

    def do_POST(self) -> None:
        pet = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = ledger.run("booked", pet["id"], pet.get("gated", False))
        self._answer(201, {"id": pet["id"], "name": name})

    def do_HEAD(self) -> None:
        self._answer(404, {})

    def _answer(self, status: int, body: dict[str, object]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Service).serve_forever()
