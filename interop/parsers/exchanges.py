"""Requests to a server with the demo tools, and its raw answers."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from reading import Answer
from rules import LEGACY, MODERN

CALL_ID = 7
PATIENCE = 30
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


def send(
    url: str, method: str, headers: dict[str, str], body: Any = None
) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    target = urlsplit(url)
    connection = http.client.HTTPConnection(target.hostname, target.port, timeout=PATIENCE)
    connection.request(method, target.path, None if body is None else json.dumps(body).encode(), headers)
    return connection, connection.getresponse()


def whole(url: str, method: str, headers: dict[str, str], body: Any = None) -> Answer:
    connection, response = send(url, method, headers, body)
    try:
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
    finally:
        connection.close()


def request(method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": CALL_ID, "method": method, "params": params or {}}


class Legacy:
    """A session of 2025-11-25."""

    def __init__(self, url: str) -> None:
        self.url = url
        client = {"name": "parsers", "version": "0"}
        opening = request("initialize", {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client})
        session = whole(url, "POST", ACCEPT, opening).headers["mcp-session-id"]
        self.headers = {**ACCEPT, "Mcp-Session-Id": session, "MCP-Protocol-Version": LEGACY}
        self.notify()

    def call(self, tool: str, **arguments: Any) -> Answer:
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": 1}}
        return whole(self.url, "POST", self.headers, request("tools/call", params))

    def notify(self) -> Answer:
        return whole(self.url, "POST", self.headers, {"jsonrpc": "2.0", "method": "notifications/initialized"})

    def unknown_method(self) -> Answer:
        return whole(self.url, "POST", self.headers, request("no/such"))

    def bad_request(self) -> Answer:
        return whole(self.url, "POST", {**self.headers, "MCP-Protocol-Version": "1999-01-01"}, request("tools/list"))

    def lost_session(self) -> Answer:
        return whole(self.url, "POST", {**self.headers, "Mcp-Session-Id": "gone"}, request("tools/list"))

    def listen_for(self, tool: str, wanted: str) -> Answer:
        """Reads the standalone stream up to the event that a call of the tool causes."""
        connection, response = send(self.url, "GET", {**self.headers, "Accept": "text/event-stream"})
        try:
            body = response.readline() + response.readline() + response.readline()
            self.call(tool)
            body += until(response, lambda read: wanted.encode() in read)
            self.call(tool)
            return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, body)
        finally:
            connection.close()

    def resume(self, event: str, messages: int) -> Answer:
        """The rest of a stream, up to this many messages."""
        headers = {**self.headers, "Accept": "text/event-stream", "Last-Event-ID": event}
        connection, response = send(self.url, "GET", headers)
        try:
            body = until(response, lambda read: read.count(b'"jsonrpc"') == messages)
            return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, body)
        finally:
            connection.close()


def until(response: http.client.HTTPResponse, done: Any) -> bytes:
    """Reads whole events until `done` accepts them or the stream ends."""
    body = b""
    while not (done(body) and body.endswith(b"\n\n")):
        line = response.readline()
        if not line:
            break
        body += line
    return body


class Modern:
    """Requests of 2026-07-28."""

    def __init__(self, url: str) -> None:
        self.url = url

    def call(self, tool: str, **arguments: Any) -> Answer:
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": 1}}
        return self._send(request("tools/call", params), {"Mcp-Name": tool})

    def notify(self) -> Answer:
        return self._send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}})

    def unknown_method(self) -> Answer:
        return self._send(request("no/such"))

    def bad_request(self) -> Answer:
        return self._send(request("tools/list"), {"Mcp-Method": "prompts/list"})

    def _send(self, message: dict[str, Any], headers: dict[str, str] | None = None) -> Answer:
        prefix = "io.modelcontextprotocol/"
        meta = message["params"].setdefault("_meta", {})
        meta |= {f"{prefix}protocolVersion": MODERN, f"{prefix}clientCapabilities": {}}
        own = {**ACCEPT, "MCP-Protocol-Version": MODERN, "Mcp-Method": message["method"]}
        return whole(self.url, "POST", {**own, **(headers or {})}, message)
