"""Requests as bytes, and their rows, for `odd_rows.py`."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
Json = dict[str, Any]
JSON_AND_STREAM = "application/json, text/event-stream"


@dataclass(frozen=True)
class Request:
    """One request. `{host}` and `{session}` in its head are replaced."""

    head: str
    body: bytes = b""
    asks: bool = False
    """Whether it has a result, so that a server that only accepts it does not serve it."""
    fits: str | None = None
    """The text of the tool's result, where another would be wrong."""
    ends: bool = False
    """Whether the client closes its side of the connection after the request, and reads on."""

    def encoded(self, host: str, session: str) -> bytes:
        head = self.head.replace("{host}", host).replace("{session}", session)
        return head.encode("latin-1") + b"\r\n\r\n" + self.body


@dataclass(frozen=True)
class Row:
    requests: tuple[Request, ...]
    opened: bool = True
    """Whether a session is opened first, as it should be."""
    at_once: bool = False
    """Whether all requests are sent at the same time, each on a connection of its own."""
    old: bool = False
    """Whether the requests are those of HTTP+SSE, whose answers come on its stream."""


def message(method: Any, params: Any = ..., id: Any = 1, **more: Any) -> Json:
    """A message; `...` leaves a member out."""
    members = {"jsonrpc": "2.0", "id": id, "method": method, "params": params, **more}
    return {name: value for name, value in members.items() if value is not ...}


def call(tool: str = "echo", arguments: Any = ..., id: Any = 7, **more: Any) -> Json:
    arguments = {"text": "x"} if arguments is ... and tool == "echo" else arguments
    params = {name: value for name, value in {"name": tool, "arguments": arguments, **more}.items() if value is not ...}
    return message("tools/call", params, id)


def notice(method: str, params: Any = ..., **more: Any) -> Json:
    return message(method, params, ..., **more)


def post(
    body: Any,
    *,
    method: str = "POST",
    target: str = "/mcp",
    version: str = "HTTP/1.1",
    chunked: bool = False,
    length: bool = True,
    fits: str | None = None,
    ends: bool = False,
    also: tuple[str, ...] = (),
    **headers: str | None,
) -> Request:
    """A request of a session. Headers are keyword arguments in lower case with `_`; None leaves one out."""
    if isinstance(body, str):
        body = body.encode()
    elif not isinstance(body, bytes):
        body = json.dumps(body).encode()
    usual: dict[str, str | None] = {
        "host": "{host}",
        "accept": JSON_AND_STREAM,
        "content_type": "application/json",
        "mcp_session_id": "{session}",
        "mcp_protocol_version": LEGACY,
    }
    sent = body
    if chunked:
        usual["transfer_encoding"] = "chunked"
        middle = len(body) // 2
        pieces = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (body[:middle], body[middle:]))
        sent = pieces + b"0\r\n\r\n"
    elif length:
        usual["content_length"] = str(len(body))
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in {**usual, **headers}.items() if value is not None]
    return Request("\r\n".join([f"{method} {target} {version}", *lines, *also]), sent, asks(body), fits, ends)


def chunk_extension(body: Json) -> Request:
    """A request with chunk extensions and a trailer."""
    request = post(body, chunked=True)
    return replace(request, body=request.body.replace(b"\r\n", b";x=y\r\n", 1).replace(b"\r\n0\r\n\r\n", b"\r\n0\r\nx-trailer: 1\r\n\r\n"))


def bare_feeds(body: Json) -> Request:
    """A request whose lines end in LF alone, except the last."""
    request = post(body)
    return replace(request, head=request.head.replace("\r\n", "\n"))


def asks(body: bytes) -> bool:
    """Whether a body contains a request."""
    try:
        read = json.loads(body.decode("utf-8-sig"))
    except ValueError:
        return False
    messages = [message for message in (read if isinstance(read, list) else [read]) if isinstance(message, dict)]
    return any("id" in message and not message.get("method", "notifications/").startswith("notifications/") for message in messages)


def one(body: Any, **more: Any) -> Row:
    """A row of one request in a session."""
    return Row((post(body, **more),))


def get(**headers: Any) -> Request:
    """A request for a stream."""
    return post(b"", method="GET", length=False, **{"content_type": None, "accept": "text/event-stream", **headers})


def old(**headers: str | None) -> Row:
    """A row that opens the stream of HTTP+SSE of 2024-11-05."""
    return Row((get(target="/sse", mcp_session_id=None, mcp_protocol_version=None, **headers),), opened=False)


def posted(*bodies: Any, target: str = "{session}", **headers: Any) -> Row:
    """A row that posts to the URL which that stream names."""
    usual = {"mcp_session_id": None, "mcp_protocol_version": None, **headers}
    return Row(tuple(post(body, target=target, **usual) for body in bodies), opened=False, old=True)


def first(*bodies: Any, **headers: str | None) -> Row:
    """A row that opens its session in its own way."""
    opening = {"mcp_protocol_version": None, **headers}
    return Row(tuple(post(body, **({"mcp_session_id": None} if at == 0 else {}), **opening) for at, body in enumerate(bodies)), opened=False)


def initialize(id: Any = 0, **params: Any) -> Json:
    usual = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "odd", "version": "1"}, **params}
    return message("initialize", {name: value for name, value in usual.items() if value is not ...}, id)


INITIALIZED = notice("notifications/initialized")
OPENING = first(initialize(), INITIALIZED).requests
MODERN_META: Json = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "odd", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def modern(body: Json | None = None, *, meta: Json | None = None, **headers: str | None) -> Row:
    """A row of one request of 2026-07-28."""
    body = body or call()
    named: dict[str, str | None] = {"mcp_method": body["method"]}
    if body["method"] == "tools/call":
        named["mcp_name"] = body["params"]["name"]
    params = {**body.get("params", {}), "_meta": {name: value for name, value in {**MODERN_META, **(meta or {})}.items() if value is not ...}}
    usual = {"mcp_session_id": None, "mcp_protocol_version": MODERN, **named, **headers}
    return Row((post({**body, "params": params}, **usual),), opened=False)


def text(arguments: str) -> str:
    """A call of `echo` with this text as arguments."""
    return '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":' + arguments + "}}"


def add(a: str, b: str = "2") -> str:
    """A call of `add` with these texts."""
    return '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add","arguments":{"a":' + a + ',"b":' + b + "}}}"
