"""An MCP server with one oddity at a time, over stdio, or over HTTP with --http.

`python3 server.py ODDITY [--http PORT] [--log FILE]`; `--http 0` takes a free port and prints it. FILE gets one line for each message
that arrives. Each oddity is a class in oddities.py: its name is the class's in kebab case, its docstring says what is odd.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TextIO

import oddities


class Log:
    """Writes down the methods that arrive."""

    def __init__(self, file: TextIO | None) -> None:
        self._file = file
        self._lock = threading.Lock()

    def note(self, what: str) -> None:
        if self._file:
            with self._lock:
                print(what, file=self._file, flush=True)


def stdio(server: oddities.Plain, log: Log) -> None:
    sys.stdout.buffer.write(server.preamble)
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        message = json.loads(line)
        log.note(message.get("method", "response"))
        for reply in server.replies(message):
            sys.stdout.buffer.write(server.encoded(reply) + b"\n")
            sys.stdout.buffer.flush()


def http(server: oddities.Plain, log: Log, port: int) -> None:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def say(self, status: int, body: bytes = b"", **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            message: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["content-length"])))
            log.note(message.get("method", "response"))
            replies = server.replies(message)
            if not replies:
                return self.say(202)
            session = {"mcp_session_id": "one"} if message.get("method") == "initialize" else {}
            kind = "application/json"
            if len(replies) == 1:
                body = server.preamble + server.encoded(replies[0], framed=False)
            else:
                kind = "text/event-stream"
                # The answer ends the stream, so it comes last.
                events = [server.encoded(reply, framed=False) for reply in reversed(replies)]
                body = b"".join(b"event: message\ndata: " + event + b"\n\n" for event in events)
            self.say(200, body, content_type=kind, **session)

        def do_GET(self) -> None:
            log.note("GET")
            if server.stream is None:
                return self.say(405)
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(server.stream)
            self.close_connection = True

        def do_DELETE(self) -> None:
            self.say(204)

        def log_message(self, *_: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    print(listening.server_address[1], flush=True)
    listening.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("oddity", choices=sorted(oddities.ALL))
    parser.add_argument("--http", type=int, metavar="PORT")
    parser.add_argument("--log", type=argparse.FileType("a"))
    args = parser.parse_args()
    server = oddities.ALL[args.oddity]()
    if args.http is None:
        stdio(server, Log(args.log))
    else:
        http(server, Log(args.log), args.http)


if __name__ == "__main__":
    main()
