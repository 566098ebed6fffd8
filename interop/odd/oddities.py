"""What servers in the field do. A new report is a new class here, and nothing else."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from typing import Any, ClassVar

Json = dict[str, Any]
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


class Refused(Exception):
    """An error instead of a result."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message}


class Plain:
    """Nothing is odd."""

    transports: ClassVar[tuple[str, ...]] = ("stdio", "http")
    watched: ClassVar[bool] = False
    """Whether the lists must not be read again and again."""
    preamble: ClassVar[bytes] = b""
    stream: ClassVar[bytes | None] = None
    """What `GET` sends before it ends; none, if that is refused."""

    def __init__(self) -> None:
        self.tools_read = 0

    def capabilities(self) -> Json:
        return {"tools": {"listChanged": True}, "resources": {}, "prompts": {}}

    def initialize(self, params: Json) -> Json:
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": self.capabilities(),
            "serverInfo": {"name": "odd", "version": "1"},
        }

    def tools(self, cursor: str | None) -> Any:
        return {"tools": TOOLS}

    def resources(self) -> Any:
        return {"resources": [RESOURCE]}

    def templates(self) -> Any:
        return {"resourceTemplates": [TEMPLATE]}

    def prompts(self) -> Any:
        return {"prompts": [PROMPT]}

    def call(self, name: str, arguments: Json) -> Any:
        return {"content": [self.text(name, arguments)]}

    def text(self, name: str, arguments: Json) -> Json:
        return {"type": "text", "text": json.dumps({"name": name, "arguments": arguments})}

    def result(self, method: str, params: Json) -> Any:
        match method:
            case "initialize":
                return self.initialize(params)
            case "ping":
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
            case "tools/call":
                return self.call(params["name"], params.get("arguments") or {})
        raise Refused(-32601, "Method not found")

    def envelope(self, reply: Json) -> Json:
        return reply

    def after(self, method: str) -> list[Json]:
        """What follows the answer to a request."""
        return []

    def replies(self, message: Json) -> list[Json]:
        """The answer to a message, and what follows it."""
        if "id" not in message or "method" not in message:
            return []
        try:
            result = self.result(message["method"], message.get("params") or {})
            if result is None:
                return []
            reply = {"result": result}
        except Refused as refused:
            reply = {"error": refused.error}
        reply = {"jsonrpc": "2.0", "id": message["id"], **reply}
        return [self.envelope(reply), *self.after(message["method"])]

    def encoded(self, message: Json, *, framed: bool = True) -> bytes:
        return json.dumps(message).encode()


# Lists.


class ResourcesError(Plain):
    """`resources/list` ends in -32603."""

    def resources(self) -> Any:
        raise Refused(-32603, "not implemented")


class TemplatesError(Plain):
    """`resources/templates/list` ends in -32600."""

    def templates(self) -> Any:
        raise Refused(-32600, "unknown request")


class PromptsError(Plain):
    """`prompts/list` ends in -32602."""

    def prompts(self) -> Any:
        raise Refused(-32602, "unknown method")


class ToolsError(Plain):
    """`tools/list` ends in -32603; there are resources and prompts."""

    def tools(self, cursor: str | None) -> Any:
        raise Refused(-32603, "no database")


class ResourcesSilent(Plain):
    """`resources/list` is never answered."""

    transports = ("stdio",)

    def resources(self) -> Any:
        return None


class PromptsErrorAtFirst(Plain):
    """`prompts/list` ends in -32603 the first two times."""

    asked = 0

    def prompts(self) -> Any:
        self.asked += 1
        if self.asked < 3:
            raise Refused(-32603, "not yet")
        return super().prompts()


class PromptsArray(Plain):
    """The result of `prompts/list` is `[]`."""

    def prompts(self) -> Any:
        return []


class ResourcesEmptyObject(Plain):
    """The result of `resources/list` is `{}`."""

    def resources(self) -> Any:
        return {}


class PromptsNull(Plain):
    """`prompts` is null."""

    def prompts(self) -> Any:
        return {"prompts": None}


class CursorEmpty(Plain):
    """`nextCursor` is always `""`, and cursors are ignored."""

    def tools(self, cursor: str | None) -> Any:
        return {"tools": TOOLS, "nextCursor": ""}


class CursorEmptyIsPage(Plain):
    """`nextCursor` `""` leads to a second page."""

    def tools(self, cursor: str | None) -> Any:
        return {"tools": TOOLS[:4], "nextCursor": ""} if cursor is None else {"tools": TOOLS[4:]}


class CursorSame(Plain):
    """`nextCursor` is always the same."""

    def tools(self, cursor: str | None) -> Any:
        return {"tools": TOOLS, "nextCursor": "MTAw"}


class CursorAlternating(Plain):
    """`nextCursor` alternates between two values."""

    def tools(self, cursor: str | None) -> Any:
        return {"tools": TOOLS, "nextCursor": "b" if cursor == "a" else "a"}


class CursorNew(Plain):
    """`nextCursor` is always new, and cursors are ignored."""

    def tools(self, cursor: str | None) -> Any:
        return {"tools": TOOLS, "nextCursor": str(self.tools_read)}


class CursorNull(Plain):
    """`nextCursor` is null on the last page."""

    def tools(self, cursor: str | None) -> Any:
        return {"tools": TOOLS, "nextCursor": None}


# Schemas.


class Schemas(Plain):
    """One tool with an odd schema."""

    schema: ClassVar[Any] = {"type": "object"}

    def tools(self, cursor: str | None) -> Any:
        return {"tools": [{"name": "odd", "inputSchema": self.schema}, *TOOLS]}


class SchemaBooleanProperty(Schemas):
    """A property's schema is `true`, as the Go SDK writes `any`."""

    schema = {
        "type": "object",
        "properties": {"title": {"type": "string"}, "data": True, "never": False},
        "required": ["title", "data"],
        "additionalProperties": False,
    }


class SchemaNoType(Schemas):
    """The root has no `type`."""

    schema = {"properties": {"path": {"type": "string"}}, "required": ["path"]}


class SchemaTypeList(Schemas):
    """The root's `type` is `["object"]`."""

    schema = {"type": ["object"], "properties": {"path": {"type": "string"}}, "required": ["path"]}


class SchemaAnyOf(Schemas):
    """The root is an `anyOf`."""

    schema = {
        "anyOf": [
            {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
            {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        ]
    }


class SchemaRef(Schemas):
    """The root is a `$ref`."""

    schema = {
        "$ref": "#/$defs/Args",
        "$defs": {"Args": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}},
    }


class SchemaRequiredNull(Schemas):
    """`required` is null."""

    schema = {"type": "object", "properties": {"q": {"type": "string"}}, "required": None}


class SchemaPropertiesNull(Schemas):
    """`properties` is null."""

    schema = {"type": "object", "properties": None}


class SchemaDraft4(Schemas):
    """Draft-04: `exclusiveMinimum` and a property's `required` are booleans."""

    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "type": "object",
        "properties": {
            "n": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
            "m": {"type": "string", "required": True},
        },
    }


class SchemaEmpty(Schemas):
    """The schema is `{}`."""

    schema = {}


# Envelopes.


class ErrorNull(Plain):
    """A result has `"error": null` beside it, and an error `"result": null`."""

    def envelope(self, reply: Json) -> Json:
        return {"error": None, "result": None, **reply}


class IdString(Plain):
    """Ids come back as strings."""

    def envelope(self, reply: Json) -> Json:
        return {**reply, "id": str(reply["id"])}


class IdFloat(Plain):
    """Ids come back as floats."""

    def envelope(self, reply: Json) -> Json:
        return {**reply, "id": float(reply["id"])}


class IdZero(Plain):
    """All ids come back as 0."""

    def envelope(self, reply: Json) -> Json:
        return {**reply, "id": 0}


class ArrayOfOne(Plain):
    """An answer is an array of one."""

    def encoded(self, message: Json, *, framed: bool = True) -> bytes:
        return json.dumps([message]).encode()


class Bom(Plain):
    """A byte order mark comes first."""

    preamble = b"\xef\xbb\xbf"


class NoJsonrpc(Plain):
    """Answers lack `jsonrpc`."""

    def envelope(self, reply: Json) -> Json:
        return {name: value for name, value in reply.items() if name != "jsonrpc"}


class ExtraMember(Plain):
    """Answers have a member that JSON-RPC does not know."""

    def envelope(self, reply: Json) -> Json:
        return {**reply, "took": 3}


# Results.


class CapabilitiesEmpty(Plain):
    """`capabilities` is `{}`, and there are tools."""

    def capabilities(self) -> Json:
        return {}


class StructuredOnly(Plain):
    """A result has `structuredContent` and no `content`."""

    def call(self, name: str, arguments: Json) -> Any:
        return {"structuredContent": {"name": name}}


class ContentNull(Plain):
    """`content` is null beside `structuredContent`."""

    def call(self, name: str, arguments: Json) -> Any:
        return {"content": None, "structuredContent": {"name": name}}


class ToolResult(Plain):
    """A result is a `toolResult`, as in 2024-10-07."""

    def call(self, name: str, arguments: Json) -> Any:
        return {"toolResult": {"content": [self.text(name, arguments)]}}


class ContentText(Plain):
    """`content` is a string."""

    def call(self, name: str, arguments: Json) -> Any:
        return {"content": "done"}


# Handshakes.


class RefusesElicitationModes(Plain):
    """`initialize` with members in `elicitation` is refused, as by the Java SDK 0.17.0."""

    def initialize(self, params: Json) -> Json:
        if params["capabilities"].get("elicitation"):
            raise Refused(-32603, 'Unrecognized field "form"')
        return super().initialize(params)


class RefusesElicitation(Plain):
    """`initialize` with `elicitation` is refused."""

    def initialize(self, params: Json) -> Json:
        if "elicitation" in params["capabilities"]:
            raise Refused(-32602, "unknown capability: elicitation")
        return super().initialize(params)


class DiesOfElicitation(Plain):
    """The server dies of `elicitation`."""

    transports = ("stdio",)

    def initialize(self, params: Json) -> Json:
        if "elicitation" in params["capabilities"]:
            os._exit(1)
        return super().initialize(params)


class SlowStart(Plain):
    """The server starts slowly, and says on standard error that it does, as package managers do."""

    transports = ("stdio",)

    def __init__(self) -> None:
        super().__init__()
        for percent in range(0, 100, 12):
            print(f"fetching: {percent} %", file=sys.stderr, flush=True)
            time.sleep(1)


class RefusesNewVersions(Plain):
    """`initialize` with a version after 2025-03-26 is refused."""

    def initialize(self, params: Json) -> Json:
        if params["protocolVersion"] > "2025-03-26":
            raise Refused(-32602, "Unsupported protocol version")
        return super().initialize(params)


# Changes.


class ChangedAfterList(Plain):
    """`list_changed` follows each list, which never changes."""

    watched = True

    def call(self, name: str, arguments: Json) -> Any:
        # How often the lists have been read.
        text = str(self.tools_read) if name == "readings" else self.text(name, arguments)["text"]
        return {"content": [{"type": "text", "text": text}]}

    def after(self, method: str) -> list[Json]:
        changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        return [changed] if method == "tools/list" else []


class ChangedAlways(ChangedAfterList):
    """`list_changed` follows each list, which has a new tool each time."""

    def tools(self, cursor: str | None) -> Any:
        return {"tools": [*TOOLS, {**TOOLS[0], "name": f"new{self.tools_read}"}]}


class GetEnds(Plain):
    """The stream of `GET` ends at once."""

    transports = ("http",)
    watched = True
    stream = b"streaming unsupported\n\n"


def _name(kind: type[Plain]) -> str:
    return re.sub(r"(?<!^)(?=[A-Z0-9])", "-", kind.__name__).lower()


def _all(kind: type[Plain]) -> list[type[Plain]]:
    return [kind] + [leaf for below in kind.__subclasses__() for leaf in _all(below)]


ALL: dict[str, type[Plain]] = {_name(kind): kind for kind in _all(Plain) if kind is not Schemas}
