"""The envelopes of results and errors."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from plain import FAILS, TOOLS, WHY, Json, Plain, Refused


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


class JsonrpcNumber(Plain):
    """`jsonrpc` is a number."""

    def envelope(self, reply: Json) -> Json:
        return {**reply, "jsonrpc": 2.0}


class IdBehind(Plain):
    """`id` and `jsonrpc` come last."""

    def envelope(self, reply: Json) -> Json:
        return dict(reversed(reply.items()))


class _Texts(Plain):
    """The text of messages is changed."""

    def changed(self, text: str) -> str:
        return text

    def encoded(self, message: Json, *, framed: bool = True) -> bytes:
        return self.changed(json.dumps(message)).encode("utf-8", "surrogatepass")


class IdTwice(_Texts):
    """Answers have `id` twice."""

    def changed(self, text: str) -> str:
        message = json.loads(text)
        return text[:-1] + f', "id": {json.dumps(message["id"])}}}' if "id" in message else text


class JsonrpcTwice(_Texts):
    """Answers have `jsonrpc` twice."""

    def changed(self, text: str) -> str:
        return text[:-1] + ', "jsonrpc": "2.0"}'


class ResultTwice(_Texts):
    """Answers have `result` twice; the second one is that of the request."""

    def changed(self, text: str) -> str:
        return text.replace('"result": ', '"result": {}, "result": ', 1)


class TextTwice(_Texts):
    """`text` of a content comes twice."""

    def changed(self, text: str) -> str:
        return text.replace('"text": "{', '"text": "no", "text": "{')


class Escaped(_Texts):
    """Names of members are written with escapes."""

    def changed(self, text: str) -> str:
        return text.replace('"id"', '"\\u0069d"').replace('"result"', '"r\\u0065sult"')


class WhiteSpace(_Texts):
    """There are blanks and tabs between all tokens, and behind the message."""

    def changed(self, text: str) -> str:
        return " \t" + text.replace('": ', '"\t :  ') + "  \t"


class ErrorText(Plain):
    """An error is a text."""

    def prompts(self) -> Any:
        raise Refused(0, "")

    def envelope(self, reply: Json) -> Json:
        return {**reply, "error": "no prompts"} if "error" in reply else reply


class ErrorCodeText(Plain):
    """The code of an error is a text."""

    def prompts(self) -> Any:
        raise Refused(0, "")

    def envelope(self, reply: Json) -> Json:
        return {**reply, "error": {"code": "-32601", "message": "no prompts"}} if "error" in reply else reply


class ErrorWithoutMessage(Plain):
    """An error has a code only."""

    def prompts(self) -> Any:
        raise Refused(0, "")

    def envelope(self, reply: Json) -> Json:
        return {**reply, "error": {"code": -32601}} if "error" in reply else reply


class ErrorWithoutId(Plain):
    """An error has `"id": null`."""

    def prompts(self) -> Any:
        raise Refused(-32601, "no prompts")

    def envelope(self, reply: Json) -> Json:
        return {**reply, "id": None} if "error" in reply else reply


class ErrorOfTool(Plain):
    """A tool that fails says so by an error without `code`, and the client is told."""

    expected = {"call": FAILS}

    def call(self, name: str, arguments: Json) -> Any:
        raise Refused(0, "")

    def envelope(self, reply: Json) -> Json:
        return {**reply, "error": {"message": "it broke"}} if "error" in reply else reply


class AnsweredTwice(Plain):
    """Each answer is sent twice."""

    def after(self, method: str) -> list[Json]:
        return [self.again]

    def answer(self, message: Json) -> Json | None:
        answered = super().answer(message)
        self.again = answered or {}
        return answered


class AnswersOfNobody(Plain):
    """Ahead of each answer comes one to a request that was not sent."""

    def before(self, message: Json) -> list[Json]:
        return [{"jsonrpc": "2.0", "id": 4711, "result": {}}, {"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "x"}}]


class ErrorsOfNothing(Plain):
    """Ahead of each answer comes an error that names no request."""

    def before(self, message: Json) -> list[Json]:
        return [{"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}}]


class NoticesUnknown(Plain):
    """Ahead of each answer come unknown notifications."""

    def before(self, message: Json) -> list[Json]:
        return [{"jsonrpc": "2.0", "method": method} for method in ("notifications/odd", "$/progress", "log")]


class NoticesParamsOdd(Plain):
    """Ahead of each answer come notifications whose `params` are null or an array."""

    def before(self, message: Json) -> list[Json]:
        return [{"jsonrpc": "2.0", "method": "notifications/odd", "params": params} for params in (None, [1])]


class RequestsUnknown(Plain):
    """Ahead of each answer the server asks what no client knows, and pings."""

    eras = ("legacy",)

    def before(self, message: Json) -> list[Json]:
        return [{"jsonrpc": "2.0", "id": f"s{message['id']}{method}", "method": method} for method in ("odd/ask", "ping")]


class ProgressUnasked(Plain):
    """Ahead of each answer comes progress for a token that was not given."""

    def before(self, message: Json) -> list[Json]:
        params = {"progressToken": "nobody", "progress": 1, "total": None}
        return [{"jsonrpc": "2.0", "method": "notifications/progress", "params": params}]


class LogsOdd(Plain):
    """Ahead of each answer come log messages with an unknown level, and without data."""

    def before(self, message: Json) -> list[Json]:
        params: tuple[Json, ...] = ({"level": "trace", "data": "x"}, {"level": "info"}, {"level": "info", "logger": None, "data": None})
        return [{"jsonrpc": "2.0", "method": "notifications/message", "params": each} for each in params]


class CancelsUnknown(Plain):
    """Ahead of each answer the server cancels a request that it did not send."""

    def before(self, message: Json) -> list[Json]:
        return [{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "x"}}]


class _NotUtf8(Plain):
    """One letter is replaced by bytes that are no UTF-8."""

    odd: ClassVar[bytes] = b"\xe4"

    def encoded(self, message: Json, *, framed: bool = True) -> bytes:
        return super().encoded(message).replace(b"LETTER", self.odd)


class ResultNotUtf8(_NotUtf8):
    """The result of a tool has a letter in Latin-1."""

    def text(self, name: str, arguments: Json) -> Json:
        return {"type": "text", "text": "GerLETTERt"}


class ResultCutUtf8(_NotUtf8):
    """The result of a tool ends in the middle of a letter, as when its length is counted in bytes."""

    odd = "\u2026".encode()[:2]

    def text(self, name: str, arguments: Json) -> Json:
        return {"type": "text", "text": "GerLETTER"}


class EventNotUtf8(ResultNotUtf8):
    """The result of a tool has a letter in Latin-1 and follows a notification."""

    def before(self, message: Json) -> list[Json]:
        return [{"jsonrpc": "2.0", "method": "notifications/odd"}]


class ToolsNotUtf8(_NotUtf8):
    """The description of a tool has a letter in Latin-1."""

    def tools(self, cursor: str | None) -> Any:
        return {"tools": [{**tool, "description": "GerLETTERt"} for tool in TOOLS]}


class ErrorNotUtf8(_NotUtf8):
    """The message of a tool's error has a letter in Latin-1."""

    def call(self, name: str, arguments: Json) -> Any:
        raise Refused(-32000, f"{WHY}: GerLETTERt")


class _CallFails(Plain):
    """A tool fails by an odd error."""

    error: ClassVar[Any] = None

    def call(self, name: str, arguments: Json) -> Any:
        raise Refused(0, "")

    def envelope(self, reply: Json) -> Json:
        return {**reply, "error": self.error} if "error" in reply else reply


class CallErrorCodeFloat(_CallFails):
    """The code of an error is a float."""

    expected = {"call": WHY}
    error = {"code": -32000.0, "message": WHY}


class CallErrorCodeHalf(_CallFails):
    """The code of an error is no whole number."""

    expected = {"call": WHY}
    error = {"code": 1.5, "message": WHY}


class CallErrorCodeHuge(_CallFails):
    """The code of an error has 20 digits."""

    expected = {"call": WHY}
    error = {"code": 12345678901234567890, "message": WHY}


class CallErrorCodeText(_CallFails):
    """The code of an error is a text that is a number."""

    expected = {"call": WHY}
    error = {"code": "-32000", "message": WHY}


class CallErrorCodeName(_CallFails):
    """The code of an error is a name."""

    expected = {"call": WHY}
    error = {"code": "E_CAT", "message": WHY}


class CallErrorCodeNull(_CallFails):
    """The code of an error is null."""

    expected = {"call": WHY}
    error = {"code": None, "message": WHY}


class CallErrorWithoutCode(_CallFails):
    """An error has a message only."""

    expected = {"call": WHY}
    error = {"message": WHY}


class CallErrorWithoutMessage(_CallFails):
    """An error has a code and data."""

    expected = {"call": FAILS}
    error = {"code": -32000, "data": {"reason": WHY}}


class CallErrorMessageNull(_CallFails):
    """The message of an error is null."""

    expected = {"call": FAILS}
    error = {"code": -32000, "message": None, "data": WHY}


class CallErrorMessageObject(_CallFails):
    """The message of an error is an object."""

    expected = {"call": FAILS}
    error = {"code": -32000, "message": {"en": WHY}}


class CallErrorText(_CallFails):
    """An error is a text."""

    expected = {"call": WHY}
    error = WHY


class CallErrorExtra(_CallFails):
    """An error has members that JSON-RPC does not know."""

    error = {"code": -32000, "message": WHY, "stack": ["a", "b"], "name": "Error"}
