"""A server whose lists differ by caller. No packages.

Without `--http` it speaks stdio. Its tool `enable` adds a tool, a resource and a prompt in this process, and announces that.

With `--http` it speaks Streamable HTTP, prints its URL, and wants a bearer token that it knows for everything: whoever has it sees
tools of its own, and may subscribe only to its own resource. `GET /seen` says what was asked; `GET /touch/URI` tells the sessions that watch it. `--handshake` lets anybody open a session. `--modern` speaks 2026-07-28.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

USERS = {"token-alice": "alice", "token-bob": "bob", "token-service": "service"}
OBJECT = {"type": "object"}
Message = dict[str, Any]


class Offer:
    """The offers of one process, or of one user in one session."""

    def __init__(self, user: str | None = None) -> None:
        self.user, self.enabled = user, False
        self.watched: set[str] = set()

    def lists(self, method: str) -> Message | None:
        names = ["whoami", f"{self.user}_only"] if self.user else ["hello"]
        names += ["enable", "disable", *(["extra"] if self.enabled else [])]
        if method == "tools/list":
            return {"tools": [{"name": name, "inputSchema": OBJECT} for name in names]}
        if method == "resources/list":
            uris = [f"note://{self.user or 'all'}", *(["note://extra"] if self.enabled else [])]
            return {"resources": [{"uri": uri, "name": uri} for uri in uris]}
        if method == "resources/templates/list":
            return {"resourceTemplates": []}
        if method == "prompts/list":
            prompts = [self.user or "plain", *(["extra"] if self.enabled else [])]
            return {"prompts": [{"name": name} for name in prompts]}
        return None

    def answer(self, method: str, params: Message) -> Message:
        """A result, or an error."""
        listed = self.lists(method)
        if listed is not None:
            return {"result": listed}
        if method == "tools/call":
            return self.call(params["name"])
        if method == "resources/read":
            uri = params["uri"]
            if uri not in [item["uri"] for item in self.lists("resources/list")["resources"]]:
                return failure(-32002, f"no resource {uri}")
            return {"result": {"contents": [{"uri": uri, "text": f"{uri} of {self.user}"}]}}
        if method == "resources/subscribe":
            if params["uri"] not in [item["uri"] for item in self.lists("resources/list")["resources"]]:
                return failure(-32602, f"no resource {params['uri']} for {self.user}")
            self.watched.add(params["uri"])
            return {"result": {}}
        if method == "prompts/get":
            if params["name"] not in [item["name"] for item in self.lists("prompts/list")["prompts"]]:
                return failure(-32602, f"no prompt {params['name']}")
            message = {"role": "user", "content": {"type": "text", "text": f"prompt of {self.user}"}}
            return {"result": {"messages": [message]}}
        if method == "ping":
            return {"result": {}}
        return failure(-32601, f"no method {method}")

    def call(self, name: str) -> Message:
        if name not in [tool["name"] for tool in self.lists("tools/list")["tools"]]:
            return failure(-32602, f"the server has no tool {name} for {self.user}")
        if name in ("enable", "disable"):
            self.enabled = name == "enable"
        return {"result": {"content": [{"type": "text", "text": f"{name} for {self.user}"}]}}


def failure(code: int, message: str) -> Message:
    return {"error": {"code": code, "message": message}}


CAPABILITIES = {name: {"listChanged": True} for name in ("tools", "resources", "prompts")}
CHANGED = [{"jsonrpc": "2.0", "method": f"notifications/{name}/list_changed"} for name in CAPABILITIES]
CAPABILITIES["resources"]["subscribe"] = True


def greeting(version: str) -> Message:
    return {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": {"name": "lists", "version": "1"}}


def stdio() -> None:
    offer = Offer()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        params = message.get("params") or {}
        if message["method"] == "initialize":
            answer = {"result": greeting(params["protocolVersion"])}
        else:
            before = offer.enabled
            answer = offer.answer(message["method"], params)
            if offer.enabled != before:
                for changed in CHANGED:
                    print(json.dumps(changed), flush=True)
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)


class Session:
    def __init__(self, user: str | None) -> None:
        self.offer, self.stream = Offer(user), []


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body are two packets, and the second would wait for the acknowledgement of the first.
    disable_nagle_algorithm = True
    options: argparse.Namespace
    lock = threading.Condition()
    sessions: dict[str, Session] = {}
    seen: Counter[str] = Counter()
    numbers = count(1)
    # Delays tools/list.
    held = False

    def log_message(self, *_: object) -> None:
        pass

    def plain(self, status: int, body: Message | None = None, headers: tuple[tuple[str, str], ...] = ()) -> None:
        text = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def user(self) -> str | None:
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        # An exchanged token ends with its original.
        return USERS.get(token.rpartition("for ")[2])

    def do_GET(self) -> None:
        if self.path == "/seen":
            with self.lock:
                return self.plain(200, dict(self.seen))
        if self.path in ("/hold", "/release"):
            with self.lock:
                type(self).held = self.path == "/hold"
                self.lock.notify_all()
            return self.plain(200)
        if self.path.startswith("/touch/"):
            uri = self.path.removeprefix("/touch/")
            told = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}}
            with self.lock:
                for session in self.sessions.values():
                    session.stream += [told] * (uri in session.offer.watched)
                self.lock.notify_all()
            return self.plain(200)
        session = self.sessions.get(self.headers.get("Mcp-Session-Id", ""))
        if session is None or not self.user():
            return self.plain(405 if self.user() else 401)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            while True:
                with self.lock:
                    self.lock.wait_for(lambda: session.stream, 1)
                    told, session.stream = session.stream, []
                for message in told:
                    self.wfile.write(f"data: {json.dumps(message)}\n\n".encode())
                self.wfile.write(b": there\n\n")
                self.wfile.flush()
        except OSError:
            return None

    def do_DELETE(self) -> None:
        self.plain(200)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/token":
            subject = dict(part.split("=", 1) for part in body.decode().split("&"))["subject_token"]
            if subject not in USERS:
                return self.plain(400, {"error": "invalid_grant", "error_description": "who is that?"})
            return self.plain(200, {"access_token": f"for {subject}", "token_type": "Bearer", "expires_in": 60})
        message = json.loads(body)
        method, params, user = message.get("method"), message.get("params") or {}, self.user()
        with self.lock:
            self.seen[f"{method} {user}"] += 1
        opens = self.options.handshake and method in ("initialize", "notifications/initialized", "ping", "server/discover")
        if user is None and not opens:
            return self.plain(401, None, (("WWW-Authenticate", 'Bearer error="invalid_token"'),))
        if self.options.modern:
            return self.modern(message, method, params, user)
        if method == "initialize":
            name = f"session-{next(self.numbers)}"
            self.sessions[name] = Session(user)
            result = greeting(params["protocolVersion"])
            return self.plain(200, {"jsonrpc": "2.0", "id": message["id"], "result": result}, (("Mcp-Session-Id", name),))
        session = self.sessions.get(self.headers.get("Mcp-Session-Id", ""))
        if session is None:
            return self.plain(404, {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "no such session"}})
        if "id" not in message or method is None:
            return self.plain(202)
        self.wait(method)
        session.offer.user = user
        before = session.offer.enabled
        answer = session.offer.answer(method, params)
        if session.offer.enabled != before:
            with self.lock:
                session.stream += CHANGED
                self.lock.notify_all()
        return self.plain(200, {"jsonrpc": "2.0", "id": message["id"], **answer})

    def wait(self, method: str) -> None:
        if method == "tools/list":
            with self.lock:
                self.lock.wait_for(lambda: not self.held, 30)

    def modern(self, message: Message, method: str, params: Message, user: str | None) -> None:
        if self.headers.get("MCP-Protocol-Version") != "2026-07-28" or method == "initialize":
            error = {"code": -32022, "message": "Unsupported protocol version", "data": {"supported": ["2026-07-28"]}}
            return self.plain(400, {"jsonrpc": "2.0", "id": message.get("id"), "error": error})
        if method == "server/discover":
            answer = {"result": {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES}}
        else:
            self.wait(method)
            answer = Offer(user).answer(method, params)
        return self.plain(200, {"jsonrpc": "2.0", "id": message.get("id"), **answer})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", action="store_true")
    parser.add_argument("--handshake", action="store_true")
    parser.add_argument("--modern", action="store_true")
    options = parser.parse_args()
    if not options.http:
        return stdio()
    Handler.options = options
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(f"http://127.0.0.1:{server.server_port}/mcp", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
