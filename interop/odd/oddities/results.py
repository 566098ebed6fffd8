"""Results of tools."""

from __future__ import annotations

import json
from typing import Any

from plain import FAILS, Json, Plain


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


class StructuredArray(Plain):
    """`structuredContent` is an array."""

    def call(self, name: str, arguments: Json) -> Any:
        return {"content": [self.text(name, arguments)], "structuredContent": [1, 2]}


class StructuredNull(Plain):
    """`structuredContent` is null beside `content`."""

    def call(self, name: str, arguments: Json) -> Any:
        return {"content": [self.text(name, arguments)], "structuredContent": None}


class StructuredNumbers(Plain):
    """`structuredContent` has numbers beyond 2^53, and with many digits."""

    def call(self, name: str, arguments: Json) -> Any:
        return {"content": [], "structuredContent": {"big": 2**63 + 1, "bigger": 10**30, "digits": 0.1 + 0.2, "small": 5e-324}}


class StructuredNan(Plain):
    """`structuredContent` has NaN and Infinity, as Python writes them."""

    def call(self, name: str, arguments: Json) -> Any:
        return {"content": [], "structuredContent": {"ratio": float("nan"), "most": float("inf")}}


class StructuredDeep(Plain):
    """`structuredContent` is nested 100 times."""

    def call(self, name: str, arguments: Json) -> Any:
        deep: Json = {"last": True}
        for _ in range(100):
            deep = {"next": deep}
        return {"content": [], "structuredContent": deep}


class TextSurrogate(Plain):
    """A text has half of a character outside the first plane, as JavaScript cuts it."""

    def call(self, name: str, arguments: Json) -> Any:
        return {"content": [{"type": "text", "text": "cut \ud83d"}]}


class TextNul(Plain):
    """A text has a NUL and other control characters."""

    def call(self, name: str, arguments: Json) -> Any:
        return {"content": [{"type": "text", "text": "\0\x01\x7f\u2028\ufeff"}]}


class TextEmpty(Plain):
    """A text is empty."""

    def call(self, name: str, arguments: Json) -> Any:
        return {"content": [{"type": "text", "text": ""}]}


class TextLarge(Plain):
    """A text has 300,000 characters."""

    def call(self, name: str, arguments: Json) -> Any:
        return {"content": [{"type": "text", "text": "x\u00e4\n" * 100_000}]}


class _Unescaped(Plain):
    """Nothing beyond ASCII is escaped."""

    def encoded(self, message: Json, *, framed: bool = True) -> bytes:
        return json.dumps(message, ensure_ascii=False).encode()


class TextSeparators(_Unescaped):
    """A text has what Unicode takes for ends of lines, as it is."""

    def call(self, name: str, arguments: Json) -> Any:
        return {"content": [{"type": "text", "text": "a\u2028b\u2029c\u0085d\u007fe"}]}


class TextSeparatorsInEvent(TextSeparators):
    """The same behind a notification."""

    def before(self, message: Json) -> list[Json]:
        return [{"jsonrpc": "2.0", "method": "notifications/odd"}]


class ResultNull(Plain):
    """The result of a call is null."""

    expected = {"call": FAILS}

    def envelope(self, reply: Json) -> Json:
        return {**reply, "result": None} if "content" in reply.get("result", ()) else reply


class ResultText(Plain):
    """The result of a call is a text."""

    expected = {"call": FAILS}

    def call(self, name: str, arguments: Json) -> Any:
        return "done"


class ResultMembers(Plain):
    """A result has unknown members."""

    def call(self, name: str, arguments: Json) -> Any:
        return {"content": [self.text(name, arguments)], "status": "ok", "isError": False, "code": 0}


class IsErrorNull(Plain):
    """`isError` is null."""

    def call(self, name: str, arguments: Json) -> Any:
        return {"content": [self.text(name, arguments)], "isError": None}


class IsErrorText(Plain):
    """`isError` is a text."""

    def call(self, name: str, arguments: Json) -> Any:
        return {"content": [self.text(name, arguments)], "isError": "false"}


class IsErrorEmpty(Plain):
    """A tool fails without a word."""

    def call(self, name: str, arguments: Json) -> Any:
        return {"content": [], "isError": True}


class MetaNull(Plain):
    """`_meta` of a result is null."""

    def call(self, name: str, arguments: Json) -> Any:
        return {"content": [self.text(name, arguments)], "_meta": None}


class MetaForeign(Plain):
    """`_meta` has names and values of all kinds."""

    def call(self, name: str, arguments: Json) -> Any:
        return {"content": [self.text(name, arguments)], "_meta": {"": None, "a b": [1], "io.modelcontextprotocol/odd": {"x": 1}}}
