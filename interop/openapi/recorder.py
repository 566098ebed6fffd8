"""A service over HTTP that remembers each request as it came and answers `{}`."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Request:
    """What arrived: nothing of it is decoded."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> list[str]:
        """The pairs of the query, as they are written."""
        return [pair for pair in self.target.partition("?")[2].split("&") if pair]


class Recorder:
    """The service, for as long as it is entered."""

    def __enter__(self) -> Recorder:
        self.requests: list[Request] = []
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                # Any method is one: `QUERY` and `COPY` have no handler of their own.
                self.raw_requestline = self.rfile.readline(65537)
                if not self.raw_requestline or not self.parse_request():
                    self.close_connection = True
                    return
                self.answer()
                self.wfile.flush()

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if self.path != "/" or self.command != "HEAD":
                    headers = {name.lower(): value for name, value in self.headers.items()}
                    recorder.requests.append(Request(self.command, self.path, headers, body))
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "2")
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(b"{}")

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()

    def take(self) -> Request | None:
        """The last request since the last time."""
        found = self.requests[-1] if self.requests else None
        self.requests.clear()
        return found
