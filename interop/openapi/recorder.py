"""An HTTP service that records each request and answers `{}`."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Request:
    """The request as it arrived, without decoding."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> list[str]:
        """The query's pairs, as written."""
        return [pair for pair in self.target.partition("?")[2].split("&") if pair]


class Recorder:
    """The service; a context manager."""

    def __enter__(self) -> Recorder:
        self.requests: list[Request] = []
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Headers and body are two packets, and the second would wait for the acknowledgement of the first.
            disable_nagle_algorithm = True

            def handle_one_request(self) -> None:
                # Accepts any method: `QUERY` and `COPY` have no handlers of their own.
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
        """The last request since the previous call."""
        found = self.requests[-1] if self.requests else None
        self.requests.clear()
        return found
