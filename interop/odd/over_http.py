"""The odd servers over HTTP: `python3 over_http.py [DIRECTORY]` takes a free port, prints it, and serves `/RUN/ODDITY/ERA/mcp`.

Each RUN has a server of its own. Its log is a file of DIRECTORY with the name of the run.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from log import Log
from oddities import ALL
from plain import Plain, Response

COMMENT_SECONDS = 1.0


class Servers:
    """The servers of all runs, made at their first request."""

    def __init__(self, logs: str | None) -> None:
        self._logs = logs
        self._lock = threading.Lock()
        self._made: dict[str, tuple[Plain, Log]] = {}

    def at(self, path: str) -> tuple[Plain, Log]:
        run, oddity, era = path.split("/")[1:4]
        with self._lock:
            if run not in self._made:
                self._made[run] = ALL[oddity](era), Log(f"{self._logs}/{run}" if self._logs else None)
            return self._made[run]


def http(servers: Servers) -> None:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body are two packets, and the second would wait for the acknowledgement of the first.
        disable_nagle_algorithm = True

        def say(self, response: Response) -> None:
            self.protocol_version = "HTTP/1.0" if response.old else "HTTP/1.1"
            self.send_response(response.status)
            for name, value in response.headers.items():
                self.send_header(name, value)
            for cookie in response.cookies:
                self.send_header("set-cookie", cookie)
            if response.stays or not response.framed:
                self.send_header("connection", "close")
                self.close_connection = True
            elif response.chunked:
                self.send_header("transfer-encoding", "chunked")
            elif response.status != 204:
                self.send_header("content-length", str(len(response.body)))
            self.end_headers()
            body = response.body
            if response.chunked:
                body = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
            self.wfile.write(body)
            self.wfile.flush()
            self.close_connection |= response.hangs_up or response.old
            with contextlib.suppress(OSError):
                for part in response.parts:
                    self.wfile.write(part)
                    self.wfile.flush()
                while response.stays:
                    time.sleep(COMMENT_SECONDS)
                    self.wfile.write(b": \n\n")
                    self.wfile.flush()

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["content-length"]))
            message: dict[str, Any] = json.loads(text)
            server, log = servers.at(self.path)
            log.note(message.get("method", "response"))
            self.say(server.posted(self.path, message, self.headers))

        def do_GET(self) -> None:
            server, log = servers.at(self.path)
            log.note("GET")
            self.say(server.got())

        def do_DELETE(self) -> None:
            self.say(Response(204))

        def log_message(self, *_: object) -> None:
            pass

    class Listening(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

        def handle_error(self, *_: object) -> None:
            """Clients may disconnect at any time."""

    listening = Listening(("127.0.0.1", 0), Handler)
    print(listening.server_address[1], flush=True)
    listening.serve_forever()


if __name__ == "__main__":
    http(Servers(sys.argv[1] if len(sys.argv) > 1 else None))
