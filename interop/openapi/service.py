"""A service over HTTP that speaks no MCP, with the operations that the asking servers have as tools.

    service.py --http PORT

GET /openapi.json is its document.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

TEXT = {"200": {"description": "what became of it", "content": {"text/plain": {"schema": {"type": "string"}}}}}
JOB = {"steps": {"type": "integer"}, "label": {"type": "string"}}


def query(properties: dict) -> list:
    return [{"name": name, "in": "query", "required": True, "schema": schema} for name, schema in properties.items()]


def body(properties: dict) -> dict:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"required": True, "content": {"application/json": {"schema": schema}}}


DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "asking", "version": "1.0.0"},
    "servers": [{"url": "/"}],
    "paths": {
        "/echo": {"get": {"operationId": "echo", "parameters": query({"text": {"type": "string"}}), "responses": TEXT}},
        "/work": {
            "get": {"operationId": "work_safely", "parameters": query(JOB), "responses": TEXT},
            "post": {"operationId": "work", "requestBody": body(JOB), "responses": TEXT},
        },
    },
}


def record(what: str) -> None:
    """Writes to a file, because a killed process loses its memory."""
    with open(os.environ["INTEROP_RECORD"], "a", encoding="utf-8") as file:
        file.write(f"{what}\n")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body are two packets, and the second would wait for the acknowledgement of the first.
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        target = urlsplit(self.path)
        given = {name: values[0] for name, values in parse_qs(target.query, keep_blank_values=True).items()}
        if target.path == "/openapi.json":
            self.answer("application/json", json.dumps(DOCUMENT))
        elif target.path == "/echo":
            self.answer("text/plain", given["text"])
        elif target.path == "/work":
            self.work(**given)
        else:
            self.send_error(404)

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        self.work(**json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def work(self, steps: int | str, label: str) -> None:
        """Takes a while, and stops when its caller goes."""
        record(f"started {label}")
        for _ in range(int(steps)):
            time.sleep(0.05)
            readable, _, _ = select.select([self.connection], [], [], 0)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                record(f"cancelled {label}")
                self.close_connection = True
                return
        self.answer("text/plain", f"worked {steps} steps")

    def answer(self, kind: str, text: str) -> None:
        content = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    # The address is reused immediately after a kill.
    allow_reuse_address = True


if __name__ == "__main__":
    Server(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
