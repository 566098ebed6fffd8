"""What clients in the field send, as bytes. A new report is a new row here, and nothing else."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
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
    also: tuple[str, ...] = (),
    **headers: str | None,
) -> Request:
    """A request of a session. Headers are given by their names in small letters with `_`; None leaves one out."""
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
    return Request("\r\n".join([f"{method} {target} {version}", *lines, *also]), sent, asks(body), fits)


def asks(body: bytes) -> bool:
    """Whether a body has a request in it."""
    try:
        read = json.loads(body.decode("utf-8-sig"))
    except ValueError:
        return False
    messages = [message for message in (read if isinstance(read, list) else [read]) if isinstance(message, dict)]
    return any("id" in message and not message.get("method", "notifications/").startswith("notifications/") for message in messages)


def one(body: Any, **more: Any) -> Row:
    """A row of one request in a session."""
    return Row((post(body, **more),))


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
    """A call of `echo` whose arguments are this text."""
    return '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":' + arguments + "}}"


def add(a: str, b: str = "2") -> str:
    """A call of `add` with these texts."""
    return '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add","arguments":{"a":' + a + ',"b":' + b + "}}}"


LIST = message("tools/list", id=5)
PING = message("ping", id=6)

ROWS: dict[str, Row] = {
    "plain-call": one(call()),
    "plain-list": one(LIST),
    "modern-call": modern(),
    # Targets.
    "target-slash": one(call(), target="/mcp/"),
    "target-query": one(call(), target="/mcp?client=odd&key="),
    "target-slash-query": one(call(), target="/mcp/?x=1"),
    "target-percent": one(call(), target="/%6dcp"),
    "target-double-slash": one(call(), target="//mcp"),
    "target-upper-case": one(call(), target="/MCP"),
    "target-absolute": one(call(), target="http://{host}/mcp"),
    "target-dot": one(call(), target="/./mcp"),
    # Accept.
    "accept-missing": one(call(), accept=None),
    "accept-json": one(call(), accept="application/json"),
    "accept-stream": one(call(), accept="text/event-stream"),
    "accept-any": one(call(), accept="*/*"),
    "accept-weights": one(call(), accept="text/event-stream;q=0.9, application/json; q=0.1"),
    "accept-upper-case": one(call(), accept="Application/JSON, Text/Event-Stream"),
    "accept-text-any": one(call(), accept="application/json, text/*"),
    "accept-no-space": one(call(), accept="application/json,text/event-stream,*/*;q=0.1"),
    "accept-twice": one(call(), accept="application/json", also=("accept: text/event-stream",)),
    "accept-of-browsers": one(call(), accept="text/html,application/xhtml+xml,*/*;q=0.8"),
    "accept-empty": one(call(), accept=""),
    "accept-html": one(call(), accept="text/html"),
    "accept-charset": one(call(), accept="application/json; charset=utf-8, text/event-stream; charset=utf-8"),
    # Content-Type and the forms of bodies.
    "type-charset": one(call(), content_type="application/json; charset=utf-8"),
    "type-charset-quoted": one(call(), content_type='application/json;charset="UTF-8"'),
    "type-upper-case": one(call(), content_type="Application/JSON"),
    "type-missing": one(call(), content_type=None),
    "type-text": one(call(), content_type="text/plain"),
    "type-of-json-rpc": one(call(), content_type="application/json-rpc"),
    "type-suffix": one(call(), content_type="application/vnd.mcp+json"),
    "type-form": one(call(), content_type="application/x-www-form-urlencoded"),
    "type-latin-1": one(call(), content_type="application/json; charset=iso-8859-1"),
    "type-with-list": one(call(), content_type="application/json, application/json"),
    "type-twice": one(call(), also=("content-type: application/json",)),
    "body-bom": one(b"\xef\xbb\xbf" + json.dumps(call()).encode()),
    "body-white-space": one(b" \r\n\t" + json.dumps(call(), indent=2).encode() + b"\n\n"),
    "body-nul-behind": one(json.dumps(call()).encode() + b"\0"),
    "body-empty": one(b""),
    "body-two": one(json.dumps(call()) + "\n" + json.dumps(call())),
    "body-chunked": one(call(), chunked=True),
    "body-expect": one(call(), expect="100-continue"),
    "body-gzip": one(gzip.compress(json.dumps(call()).encode(), mtime=0), content_encoding="gzip"),
    "body-identity": one(call(), content_encoding="identity"),
    "body-utf-16": one(json.dumps(call()).encode("utf-16"), content_type="application/json; charset=utf-16"),
    "body-http-1.0": one(call(), version="HTTP/1.0"),
    "body-http-1.0-no-host": one(call(), version="HTTP/1.0", host=None),
    "body-close": one(call(), connection="close"),
    "body-batch": one([call(id=1), call(id=2)], mcp_protocol_version="2025-03-26"),
    "body-batch-of-one": one([call()]),
    "body-batch-empty": one([]),
    "body-of-string": one('"x"'),
    # The envelope.
    "envelope-extra-member": one({**call(), "auth": {"token": "x"}, "timestamp": 1}),
    "envelope-no-jsonrpc": one({name: value for name, value in call().items() if name != "jsonrpc"}),
    "envelope-jsonrpc-number": one({**call(), "jsonrpc": 2.0}),
    "envelope-jsonrpc-1": one({**call(), "jsonrpc": "1.0"}),
    "envelope-order": one(dict(reversed(call().items()))),
    "envelope-error-null": one({**call(), "error": None}),
    "envelope-result-null": one({**call(), "result": None}),
    "envelope-escaped-method": one(json.dumps(call()).replace("tools/call", "tools\\/call")),
    "envelope-escaped-name": one(json.dumps(call()).replace('"method"', '"\\u006dethod"')),
    "envelope-member-twice": one('{"jsonrpc":"2.0","jsonrpc":"2.0","id":7,' + json.dumps(call())[len('{"jsonrpc": "2.0", "id": 7,') :]),
    # Ids.
    "id-zero": one(call(id=0)),
    "id-negative": one(call(id=-7)),
    "id-float": one(json.dumps(call()).replace('"id": 7', '"id": 7.0')),
    "id-fraction": one(call(id=1.5)),
    "id-big": one(call(id=2**53 + 1)),
    "id-huge": one(call(id=10**30)),
    "id-empty": one(call(id="")),
    "id-long": one(call(id="x" * 400)),
    "id-unicode": one(call(id="\u00e4\U0001f600")),
    "id-of-digits": one(call(id="7")),
    "id-null": one(call(id=None)),
    "id-boolean": one(call(id=True)),
    "id-again": Row((post(call()), post(call()))),
    "id-one-for-all": first(initialize(1), INITIALIZED, message("tools/list"), call(id=1), message("ping")),
    "id-equal-at-once": Row(tuple(post(call(id=1, arguments={"text": str(at)}), fits=str(at)) for at in range(6)), at_once=True),
    "id-null-of-notification": one(message("notifications/roots/list_changed", id=None)),
    # Parameters.
    "params-null": one(message("tools/list", None)),
    "params-array": one(message("tools/list", [])),
    "params-empty": one(message("tools/list", {})),
    "params-extra": one(call(timeout=30, sessionId="x")),
    "ping-params-null": one(message("ping", None)),
    "ping-params-extra": one(message("ping", {"x": 1})),
    "cursor-empty": one(message("tools/list", {"cursor": ""})),
    "cursor-null": one(message("tools/list", {"cursor": None})),
    "cursor-unknown": one(message("tools/list", {"cursor": "x"})),
    "cursor-number": one(message("tools/list", {"cursor": 0})),
    "meta-null": one(call(_meta=None)),
    "meta-empty": one(call(_meta={})),
    "meta-array": one(call(_meta=[])),
    "meta-foreign": one(call(_meta={"n8n.io/run": {"id": [1]}, "x": None, "": 1})),
    "meta-legacy-version": one(call(_meta={"io.modelcontextprotocol/protocolVersion": LEGACY})),
    "progress-token-zero": one(call(_meta={"progressToken": 0})),
    "progress-token-empty": one(call(_meta={"progressToken": ""})),
    "progress-token-null": one(call(_meta={"progressToken": None})),
    "progress-token-fraction": one(call(_meta={"progressToken": 1.5})),
    "progress-token-object": one(call(_meta={"progressToken": {}})),
    "task-null": one(call(task=None)),
    "log-level-unknown": one(message("logging/setLevel", {"level": "verbose"})),
    "log-level-upper-case": one(message("logging/setLevel", {"level": "INFO"})),
    "prompt-arguments-null": one(message("prompts/get", {"name": "greet", "arguments": None})),
    "prompt-arguments-extra": one(message("prompts/get", {"name": "greet", "arguments": {"x": "y"}})),
    "resource-extra": one(message("resources/read", {"uri": "plain://one", "range": [0, 1]})),
    "templates-empty": one(message("resources/templates/list")),
    # Arguments.
    "arguments-null": one(call("nothing", None)),
    "arguments-missing": one(call("nothing")),
    "arguments-extra": one(call(arguments={"text": "x", "sessionId": "1", "action": "sendMessage"})),
    "arguments-extra-of-none": one(call("nothing", {"random_string": ""})),
    "arguments-list-as-text": one(call("join", {"tags": '["a", "b"]'})),
    "arguments-number-as-text": one(call("add", {"a": "1", "b": "2"})),
    "arguments-float-as-integer": one(add("1.0")),
    "arguments-exponent": one(add("1e2")),
    "arguments-minus-zero": one(add("-0")),
    "arguments-huge": one(add("1e400")),
    "arguments-as-text": one(call(arguments='{"text": "x"}')),
    "arguments-array": one(call("nothing", [])),
    "arguments-text-for-list": one(call("join", {"tags": "a"})),
    "arguments-null-member": one(call("add", {"a": 1, "b": 2, "c": None})),
    "arguments-number-for-text": one(call(arguments={"text": 5})),
    "arguments-escapes": one(text('{"text":"\\u0041\\/\\ud83d\\ude00\\u0000"}')),
    "arguments-lone-surrogate": one(text('{"text":"\\ud800"}')),
    "arguments-member-twice": one(text('{"text":"a","text":"b"}')),
    "arguments-deep": one(call(arguments={"text": "x", "deep": json.loads("[" * 40 + "]" * 40)})),
    "arguments-nan": one(add("NaN")),
    # Versions and sessions.
    "version-missing": one(call(), mcp_protocol_version=None),
    "version-older": one(call(), mcp_protocol_version="2025-03-26"),
    "version-oldest": one(call(), mcp_protocol_version="2024-11-05"),
    "version-unknown": one(call(), mcp_protocol_version="2030-01-01"),
    "version-draft": one(call(), mcp_protocol_version="DRAFT-2026-v1"),
    "version-empty": one(call(), mcp_protocol_version=""),
    "version-twice": one(call(), also=("mcp-protocol-version: 2025-11-25",)),
    "version-two": one(call(), also=("mcp-protocol-version: 2025-06-18",)),
    "version-list": one(call(), mcp_protocol_version="2025-11-25, 2025-11-25"),
    "session-upper-case": one(call(), mcp_session_id=None, also=("MCP-SESSION-ID: {session}",)),
    "session-missing": one(call(), mcp_session_id=None),
    "session-empty": one(call(), mcp_session_id=""),
    "session-unknown": one(call(), mcp_session_id="unknown"),
    "session-twice": one(call(), also=("mcp-session-id: {session}",)),
    "session-spaces": one(call(), mcp_session_id="  {session}\t "),
    # Handshakes.
    "initialize-version-unknown": first(initialize(protocolVersion="2099-01-01"), INITIALIZED, LIST),
    "initialize-version-old": first(initialize(protocolVersion="2024-10-07"), INITIALIZED, LIST),
    "initialize-version-modern": first(initialize(protocolVersion=MODERN), INITIALIZED, LIST),
    "initialize-version-missing": first(initialize(protocolVersion=...), INITIALIZED, LIST),
    "initialize-no-capabilities": first(initialize(capabilities=...), INITIALIZED, LIST),
    "initialize-no-client": first(initialize(clientInfo=...), INITIALIZED, LIST),
    "initialize-client-null": first(initialize(clientInfo=None), INITIALIZED, LIST),
    "initialize-no-client-version": first(initialize(clientInfo={"name": "odd"}), INITIALIZED, LIST),
    "initialize-client-extra": first(initialize(clientInfo={"name": "odd", "version": "1", "os": {"x": 1}}), INITIALIZED, LIST),
    "initialize-capabilities-odd": first(initialize(capabilities={"tools": {}, "experimental": {"a": True}, "x": 1}), INITIALIZED, LIST),
    "initialize-roots-null": first(initialize(capabilities={"roots": None, "sampling": None}), INITIALIZED, LIST),
    "initialize-empty-session": Row((post(initialize(), mcp_session_id="", mcp_protocol_version=None),), opened=False),
    "initialize-old-session": Row((post(initialize(), mcp_session_id="gone", mcp_protocol_version=None),), opened=False),
    "initialize-header-unknown": Row((post(initialize(), mcp_session_id=None, mcp_protocol_version="2099-01-01"),), opened=False),
    "initialize-header-version": first(initialize(), INITIALIZED, LIST, mcp_protocol_version=LEGACY),
    "initialize-json-only": first(initialize(), INITIALIZED, LIST, accept="application/json"),
    "initialize-string-id": first(initialize("start"), INITIALIZED, LIST),
    "initialize-again": one(initialize(9)),
    "initialized-missing": first(initialize(), LIST, call()),
    "initialized-twice": Row((post(INITIALIZED), post(LIST))),
    "initialized-params-null": first(initialize(), notice("notifications/initialized", None), LIST),
    "initialized-params-empty": first(initialize(), notice("notifications/initialized", {}), LIST),
    "initialized-with-id": first(initialize(), message("notifications/initialized", id=1), LIST),
    "initialized-bare": first(initialize(), notice("initialized"), LIST),
    "ping-first": first(initialize(), PING),
    # Notifications and answers that nobody waits for.
    "notification-unknown": one(notice("notifications/odd", {"x": 1})),
    "notification-foreign": one(notice("$/setTrace", {"value": "off"})),
    "notification-with-id": one(message("notifications/odd", {"x": 1}, id=5)),
    "notification-known-with-id": one(message("notifications/roots/list_changed", id=5)),
    "notification-cancelled-with-id": one(message("notifications/cancelled", {"requestId": 4711}, id=5)),
    "notification-cancelled-unknown": one(notice("notifications/cancelled", {"requestId": 4711})),
    "notification-cancelled-bare": one(notice("notifications/cancelled", {})),
    "notification-progress-unknown": one(notice("notifications/progress", {"progressToken": "x", "progress": 1})),
    "notification-accept-json": one(notice("notifications/roots/list_changed"), accept="application/json"),
    "notification-accept-missing": one(notice("notifications/roots/list_changed"), accept=None),
    "answer-unknown": one(message(..., id=4711, result={})),
    "answer-error-unknown": one(message(..., id=4711, error={"code": -1, "message": "x"})),
    "answer-null": one(message(..., id=None, error={"code": -1, "message": "x"})),
    # Methods of HTTP.
    "get-accept-missing": one(b"", method="GET", accept=None, length=False, content_type=None),
    "get-accept-any": one(b"", method="GET", accept="*/*", length=False, content_type=None),
    "get-accept-both": one(b"", method="GET", length=False, content_type=None),
    "get-no-session": one(b"", method="GET", mcp_session_id=None, length=False, content_type=None),
    "get-content-type": one(b"", method="GET", length=False),
    "head": one(b"", method="HEAD", length=False),
    "options": one(b"", method="OPTIONS", length=False),
    "put": one(call(), method="PUT"),
    "method-small": one(call(), method="post"),
    "delete-plain": Row((post(b"", method="DELETE", accept=None, content_type=None, length=False),)),
    "delete-with-body": Row((post(b"{}", method="DELETE"),)),
    "delete-twice": Row((post(b"", method="DELETE", length=False), post(b"", method="DELETE", length=False))),
    # Other headers.
    "host-name": one(call(), host="localhost:1"),
    "host-no-port": one(call(), host="127.0.0.1"),
    "host-upper-case": one(call(), host="LOCALHOST"),
    "host-foreign": one(call(), host="example.com"),
    "authorization-unasked": one(call(), authorization="bearer  x"),
    "authorization-basic": one(call(), authorization="Basic eDp5"),
    "authorization-empty": one(call(), authorization=""),
    "origin-null": one(call(), origin="null"),
    "last-event-id-of-post": one(call(), last_event_id="x"),
    "last-event-id-empty": one(b"", method="GET", last_event_id="", length=False, content_type=None),
    "header-non-ascii": one(call(), user_agent="\u00fcser"),
    "header-long": one(call(), x_long="x" * 6000),
    "header-empty": one(call(), x_empty="", cookie="", user_agent=""),
    # 2026-07-28.
    "modern-version-from-meta": modern(mcp_protocol_version=None),
    "modern-version-twice": Row((post({**call(), "params": {**call()["params"], "_meta": MODERN_META}}, mcp_session_id=None, mcp_protocol_version=MODERN, mcp_method="tools/call", mcp_name="echo", also=(f"mcp-protocol-version: {MODERN}",)),), opened=False),
    "modern-no-method-header": modern(mcp_method=None),
    "modern-no-name-header": modern(mcp_name=None),
    "modern-name-of-list": modern(LIST, mcp_name="x"),
    "modern-method-upper-case": modern(mcp_method="Tools/Call"),
    "modern-session-header": modern(mcp_session_id="x"),
    "modern-no-client": modern(meta={"io.modelcontextprotocol/clientInfo": ...}),
    "modern-client-null": modern(meta={"io.modelcontextprotocol/clientInfo": None}),
    "modern-no-client-version": modern(meta={"io.modelcontextprotocol/clientInfo": {"name": "odd"}}),
    "modern-no-capabilities": modern(meta={"io.modelcontextprotocol/clientCapabilities": ...}),
    "modern-no-meta-version": modern(meta={"io.modelcontextprotocol/protocolVersion": ...}),
    "modern-accept-json": modern(accept="application/json"),
    "modern-accept-any": modern(accept="*/*"),
    "modern-accept-missing": modern(accept=None),
    "modern-type-charset": modern(content_type="application/json;charset=utf-8"),
    "modern-id-float": modern({**call(), "id": 7.0}),
    "modern-id-empty": modern({**call(), "id": ""}),
    "modern-cursor-null": modern(message("tools/list", {"cursor": None})),
    "modern-cursor-empty": modern(message("tools/list", {"cursor": ""})),
    "modern-arguments-null": modern(call("nothing", None)),
    "modern-arguments-extra": modern(call(arguments={"text": "x", "y": 1})),
    "modern-log-level-unknown": modern(meta={"io.modelcontextprotocol/logLevel": "verbose"}),
    "modern-log-level-null": modern(meta={"io.modelcontextprotocol/logLevel": None}),
    "modern-batch": Row((post([call()], mcp_session_id=None, mcp_protocol_version=MODERN, mcp_method="tools/call", mcp_name="echo"),), opened=False),
    "modern-discover": modern(message("server/discover")),
    "modern-ping": modern(PING),
    "modern-notification-with-id": modern(message("notifications/odd", {"x": 1}, id=5)),
    "modern-initialized": modern(notice("notifications/initialized")),
    "modern-capabilities-odd": modern(meta={"io.modelcontextprotocol/clientCapabilities": {"x": 1, "roots": {"listChanged": True}}}),
    "modern-input-responses-empty": modern(call(inputResponses={})),
    "modern-input-responses-null": modern(call(inputResponses=None, requestState=None)),
    "modern-trace-odd": modern(meta={"traceparent": "x", "tracestate": 1}),
}
