"""A small, normal MCP server of either era. Each oddity overrides a part."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

Json = dict[str, Any]
LEGACY, MODERN = "legacy", "modern"
REVISION = "2026-07-28"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
TOOLS: list[Json] = [
    {
        "name": f"tool{number}",
        "description": "Echoes its arguments.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
    }
    for number in range(8)
]
RESOURCE: Json = {"uri": "odd://one", "name": "one"}
TEMPLATE: Json = {"uriTemplate": "odd://{name}", "name": "any"}
PROMPT: Json = {"name": "greet", "description": "Greets."}
CACHED = ("server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read")
QUESTION: Json = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Which colour?",
        "requestedSchema": {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]},
    },
}
FAILS = "fails"
"""What a step must do that may not be passed off as a success."""
WHY = "the cat sat on it"
"""The words of an error: a client that gets them directly must get them through Shoal too."""
ANSWER_SECONDS = 4
"""How long a server waits for what it asks."""
CHANGE_OF_MIND_SECONDS = 0.5


class Refused(Exception):
    """An error instead of a result."""

    def __init__(self, code: int, message: str, **data: Any) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}


class Response:
    """An HTTP answer. Not a dataclass, because importing those takes a fifth of a process's start."""

    stays: bool = False
    """Whether the answer does not end by itself."""
    framed: bool = True
    """Whether its length is told."""
    parts: Iterable[bytes] = ()
    """The pieces that follow the body, as they come: such an answer is not framed."""
    cookies: tuple[str, ...] = ()
    hangs_up: bool = False
    """Whether the connection ends behind it, although nothing says so."""
    chunked: bool = False
    """Whether it comes in chunks of one byte."""
    old: bool = False
    """Whether it is of HTTP/1.0."""

    def __init__(self, status: int = 202, body: bytes = b"", headers: dict[str, str] | None = None, **more: Any) -> None:
        self.status, self.body, self.headers = status, body, headers or {}
        for name, value in more.items():
            setattr(self, name, value)


def event(data: bytes) -> bytes:
    return b"event: message\ndata: " + data + b"\n\n"


class Plain:
    """A server without oddities."""

    transports: ClassVar[tuple[str, ...]] = ("stdio", "http")
    eras: ClassVar[tuple[str, ...]] = (LEGACY, MODERN)
    watched: ClassVar[bool] = False
    """Whether the lists must not be read again and again."""
    asks: ClassVar[bool] = False
    """Whether the server asks, so that its clients must declare that they can answer."""
    withdraws: ClassVar[bool] = False
    """Whether it takes its questions back, so that its clients must not answer before that."""
    expected: ClassVar[Json] = {}
    """The result of a step through Shoal where no official client can show it: `FAILS` for any failure, `WHY` for one with these words."""
    waits: ClassVar[tuple[str, ...]] = ()
    """Methods beside whose answers others are answered."""
    preamble: ClassVar[bytes] = b""
    stream: ClassVar[bytes | None] = None
    """What `GET` sends before it ends; none, if that is refused."""

    def __init__(self, era: str = LEGACY) -> None:
        self.era = era
        self.tools_read = 0

    # Results.

    def capabilities(self) -> Json:
        return {"tools": {"listChanged": True}, "resources": {}, "prompts": {}}

    def initialize(self, params: Json) -> Json:
        return {"protocolVersion": params["protocolVersion"], "capabilities": self.capabilities(), "serverInfo": self.info()}

    def discover(self) -> Json:
        return {"supportedVersions": [REVISION], "capabilities": self.capabilities()}

    def info(self) -> Any:
        return {"name": "odd", "version": "1"}

    def tools(self, cursor: str | None) -> Any:
        return {"tools": TOOLS}

    def resources(self) -> Any:
        return {"resources": [RESOURCE]}

    def templates(self) -> Any:
        return {"resourceTemplates": [TEMPLATE]}

    def prompts(self) -> Any:
        return {"prompts": [PROMPT]}

    def read(self, uri: str) -> Any:
        return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": "one"}]}

    def get(self, name: str) -> Any:
        return {"messages": [{"role": "user", "content": {"type": "text", "text": f"{name}, please"}}]}

    def call(self, name: str, arguments: Json) -> Any:
        return {"content": [self.text(name, arguments)]}

    def text(self, name: str, arguments: Json) -> Json:
        return {"type": "text", "text": json.dumps({"name": name, "arguments": arguments})}

    def result(self, method: str, params: Json) -> Any:
        match method:
            case "initialize" if self.era == LEGACY:
                return self.initialize(params)
            case "server/discover" if self.era == MODERN:
                return self.discover()
            case "ping" if self.era == LEGACY:
                return {}
            case "tools/list":
                self.tools_read += 1
                return self.tools(params.get("cursor"))
            case "resources/list":
                return self.resources()
            case "resources/templates/list":
                return self.templates()
            case "prompts/list":
                return self.prompts()
            case "resources/read":
                return self.read(params["uri"])
            case "prompts/get":
                return self.get(params["name"])
            case "tools/call":
                return self.called(params)
        raise Refused(-32601, "Method not found")

    def called(self, params: Json) -> Any:
        return self.call(params["name"], params.get("arguments") or {})

    def complete(self, method: str, result: Json) -> Json:
        """Adds the members that 2026-07-28 requires in each result."""
        kept = {"ttlMs": 0, "cacheScope": "private"} if method in CACHED else {}
        return {"resultType": "complete", **kept, "_meta": {SERVER_INFO: self.info()}, **result}

    # Messages.

    def envelope(self, reply: Json) -> Json:
        return reply

    def before(self, message: Json) -> list[Json]:
        """Messages before the answer to a request."""
        return []

    def after(self, method: str) -> list[Json]:
        """Messages after the answer to a request."""
        return []

    def answer(self, message: Json) -> Json | None:
        """The answer to a request, if it gets any."""
        method = message["method"]
        try:
            result = self.result(method, message.get("params") or {})
        except Refused as refused:
            return self.envelope({"jsonrpc": "2.0", "id": message["id"], "error": refused.error})
        if result is None:
            return None
        if self.era == MODERN and isinstance(result, dict):
            result = self.complete(method, result)
        return self.envelope({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def acknowledged(self, message: Json) -> list[Json]:
        """Acknowledges a subscription, whose answer comes at its end."""
        asked = message["params"]["notifications"]
        params = {"_meta": {SUBSCRIPTION_ID: message["id"]}, "notifications": asked}
        return [{"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params}]

    def replies(self, message: Json) -> list[Json]:
        """All messages in reply to a message, in order."""
        if "id" not in message or "method" not in message:
            return self.unasked(message)
        if message["method"] == "subscriptions/listen" and self.era == MODERN:
            return self.acknowledged(message)
        answer = self.answer(message)
        if answer is None:
            return []
        return [*self.before(message), answer, *self.after(message["method"])]

    def unasked(self, message: Json) -> list[Json]:
        """The reply to a notification or an answer."""
        return []

    def encoded(self, message: Json, *, framed: bool = True) -> bytes:
        return json.dumps(message).encode()

    def line(self, reply: Json) -> bytes:
        """A message as it is written to standard output."""
        return self.encoded(reply) + b"\n"

    # HTTP.

    def posted(self, path: str, message: Json, headers: Mapping[str, str]) -> Response:
        """The answer at a path."""
        return self.respond(message)

    def respond(self, message: Json) -> Response:
        """The answer to a posted message."""
        replies = self.replies(message)
        method = message.get("method")
        if not replies:
            return Response()
        if method == "subscriptions/listen" and self.era == MODERN:
            return self.events(replies, stays="id" not in replies[-1])
        response = self.one(replies[0]) if len(replies) == 1 else self.events(self.answer_last(replies))
        if method == "initialize":
            response.headers["mcp-session-id"] = "one"
        error = replies[-1].get("error")
        if self.era == MODERN and isinstance(error, dict) and error.get("code") == -32601:
            response.status = 404
        return response

    def answer_last(self, replies: list[Json]) -> list[Json]:
        """Ends the stream with the answer."""
        return sorted(replies, key=lambda reply: "id" in reply and "method" not in reply)

    def one(self, reply: Json) -> Response:
        body = self.preamble + self.encoded(reply, framed=False)
        return Response(200, body, {"content-type": "application/json"})

    def events(self, replies: list[Json], *, stays: bool = False) -> Response:
        body = b"".join(self.event(self.encoded(reply, framed=False)) for reply in replies)
        return Response(200, body, {"content-type": "text/event-stream"}, stays=stays)

    def event(self, data: bytes) -> bytes:
        return event(data)

    def got(self) -> Response:
        """The answer to `GET`."""
        if self.stream is None:
            return Response(405)
        return Response(200, self.stream, {"content-type": "text/event-stream"}, framed=False)


class Talks(Plain):
    """Answers some requests with several messages, and may wait for the client in between."""

    eras = (LEGACY,)
    asks = True

    def __init__(self, era: str = LEGACY) -> None:
        super().__init__(era)
        self.declared: Json = {}
        self._answers: Json = {}
        self._answered = threading.Condition()

    def talk(self, message: Json) -> Iterator[Json]:
        """Yields the messages that answer one of these requests."""
        yield from super().replies(message)

    def ask(self, name: str, method: str, params: Json | None = None) -> Json:
        return {"jsonrpc": "2.0", "id": name, "method": method, **({"params": params} if params else {})}

    def answer_to(self, name: str) -> Json | None:
        """Waits for the client's answer."""
        with self._answered:
            self._answered.wait_for(lambda: name in self._answers, ANSWER_SECONDS)
            return self._answers.pop(name, None)

    def initialize(self, params: Json) -> Json:
        self.declared = params["capabilities"]
        return super().initialize(params)

    def unasked(self, message: Json) -> list[Json]:
        if "method" not in message:
            with self._answered:
                self._answers[message["id"]] = message
                self._answered.notify_all()
        return []

    def replies(self, message: Json) -> Any:
        return self.talk(message) if message.get("method") in self.waits else super().replies(message)

    def respond(self, message: Json) -> Response:
        if message.get("method") not in self.waits:
            return super().respond(message)
        parts = (self.event(self.encoded(reply, framed=False)) for reply in self.talk(message))
        return Response(200, headers={"content-type": "text/event-stream"}, framed=False, parts=parts)
