"""MCP servers with one oddity each, over stdio, or over HTTP with --http.

`python3 server.py ODDITY ERA [--log FILE]` speaks stdio. `python3 server.py --http [--log DIRECTORY]` takes a free port, prints it, and
serves `/RUN/ODDITY/ERA/mcp`: each RUN has a server of its own. The log gets one line for each message that arrives, in FILE, or in a file
of DIRECTORY with the name of the run. Each oddity is a class in oddities/: its name is the class's in kebab case, its docstring says what is odd.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import pathlib
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from oddities import ALL
from plain import Plain, Response

COMMENT_SECONDS = 1.0


class Log:
    """Records the methods that arrive."""

    def __init__(self, path: pathlib.Path | None) -> None:
        self._file = path.open("a") if path else None
        self._lock = threading.Lock()

    def note(self, what: str) -> None:
        if self._file:
            with self._lock:
                print(what, file=self._file, flush=True)


def stdio(server: Plain, log: Log) -> None:
    lock = threading.Lock()

    def write(text: bytes) -> None:
        with lock:
            sys.stdout.buffer.write(text)
            sys.stdout.buffer.flush()

    def serve(message: dict[str, Any]) -> None:
        for reply in server.replies(message):
            write(server.line(reply))

    write(server.preamble)
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        message = json.loads(line)
        method = message.get("method", "response")
        log.note(method)
        if method in server.waits:
            threading.Thread(target=serve, args=(message,), daemon=True).start()
        else:
            serve(message)


class Servers:
    """The servers of all runs, made at their first request."""

    def __init__(self, logs: pathlib.Path | None) -> None:
        self._logs = logs
        self._lock = threading.Lock()
        self._made: dict[str, tuple[Plain, Log]] = {}

    def at(self, path: str) -> tuple[Plain, Log]:
        run, oddity, era = path.split("/")[1:4]
        with self._lock:
            if run not in self._made:
                self._made[run] = ALL[oddity](era), Log(self._logs / run if self._logs else None)
            return self._made[run]


def http(servers: Servers) -> None:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("oddity", nargs="?", choices=sorted(ALL))
    parser.add_argument("era", nargs="?", choices=("legacy", "modern"))
    parser.add_argument("--http", action="store_true")
    parser.add_argument("--log", type=pathlib.Path)
    args = parser.parse_args()
    if args.http:
        http(Servers(args.log))
    elif args.oddity and args.era:
        stdio(ALL[args.oddity](args.era), Log(args.log))
    else:
        parser.error("name an oddity and an era, or --http")


if __name__ == "__main__":
    main()
