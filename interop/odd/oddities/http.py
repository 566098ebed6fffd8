"""What servers answer over HTTP, apart from events."""

from __future__ import annotations

import gzip
import zlib
from typing import ClassVar

from plain import FAILS, Json, Plain, Refused, Response


class _Http(Plain):
    transports = ("http",)


class _Changed(_Http):
    """Answers to requests are changed."""

    def respond(self, message: Json) -> Response:
        response = super().respond(message)
        return self.changed(response, message) if "id" in message and "method" in message else response

    def changed(self, response: Response, message: Json) -> Response:
        return response


class _Typed(_Changed):
    """The type of an answer is odd."""

    kind: ClassVar[str | None] = None

    def changed(self, response: Response, message: Json) -> Response:
        if response.stays:
            return response
        if self.kind is None:
            del response.headers["content-type"]
        else:
            response.headers["content-type"] = self.kind
        return response


class TypeCharset(_Typed):
    """`Content-Type` has a character set."""

    kind = 'application/json;charset="UTF-8"'


class TypeUpperCase(_Typed):
    """`Content-Type` is in upper case."""

    kind = "Application/JSON"


class TypeMissing(_Typed):
    """There is no `Content-Type`."""


class TypeText(_Typed):
    """`Content-Type` is that of a text."""

    kind = "text/plain; charset=utf-8"


class TypeTwo(_Typed):
    """`Content-Type` has two values."""

    kind = "application/json, application/json"


class TypeOfRpc(_Typed):
    """`Content-Type` is `application/json-rpc`."""

    kind = "application/json-rpc"


class _Compressed(_Changed):
    """Answers are compressed, whatever was asked for."""

    coding: ClassVar[str] = "gzip"

    def packed(self, body: bytes) -> bytes:
        return gzip.compress(body)

    def changed(self, response: Response, message: Json) -> Response:
        if response.stays:
            return response
        response.headers["content-encoding"] = self.coding
        response.body = self.packed(response.body)
        return response


class CompressedGzip(_Compressed):
    """Answers are gzip."""


class CompressedDeflate(_Compressed):
    """Answers are deflate, with the header of zlib."""

    coding = "deflate"

    def packed(self, body: bytes) -> bytes:
        return zlib.compress(body)


class CompressedIdentity(_Compressed):
    """`Content-Encoding` is `identity`."""

    coding = "identity"

    def packed(self, body: bytes) -> bytes:
        return body


class CompressedEvents(_Compressed):
    """Events are gzip."""

    def before(self, message: Json) -> list[Json]:
        return [{"jsonrpc": "2.0", "method": "notifications/odd"}]


class CompressedBomb(_Compressed):
    """A few kilobytes are 48 MB when they are unpacked, and the call must end."""

    expected = {"call": FAILS}

    def call(self, name: str, arguments: Json) -> object:
        return {"content": [{"type": "text", "text": "x" * 48_000_000}]}


class CompressedEmpty(_Compressed):
    """What has no body is said to be gzip."""

    def packed(self, body: bytes) -> bytes:
        return body

    def respond(self, message: Json) -> Response:
        response = Plain.respond(self, message)
        return response if response.body else Response(202, headers={"content-encoding": "gzip"})


class StatusCreated(_Changed):
    """Answers have the status 201."""

    def changed(self, response: Response, message: Json) -> Response:
        response.status = 201 if response.status == 200 else response.status
        return response


class StatusOfErrors(_Changed):
    """Errors have the status 500."""

    def prompts(self) -> object:
        raise Refused(-32603, "internal error")

    def changed(self, response: Response, message: Json) -> Response:
        if b'"error"' in response.body:
            response.status = 500
        return response


class UnknownIsPage(_Changed):
    """A method that is unknown is answered with 404 and a page."""

    def changed(self, response: Response, message: Json) -> Response:
        if message["method"] == "prompts/list":
            return Response(404, b"<html>Not found</html>", {"content-type": "text/html"})
        return response


class UnknownIsOk(_Changed):
    """A method that is unknown is answered with 200, or 400 in the modern era."""

    def changed(self, response: Response, message: Json) -> Response:
        if response.status == 404:
            response.status = 400
        return response


class Unframed(_Changed):
    """The end of an answer is the end of its connection."""

    def changed(self, response: Response, message: Json) -> Response:
        response.framed = False
        return response


class Redirects(_Http):
    """The server sends its clients to the same path with a slash behind, as Starlette does."""

    def posted(self, path: str, message: Json) -> Response:
        return self.respond(message) if path.endswith("/") else Response(307, headers={"location": path + "/"})


class NewSessions(_Changed):
    """Each answer has another session id, and what comes in is not looked at."""

    eras = ("legacy",)

    def changed(self, response: Response, message: Json) -> Response:
        response.headers["mcp-session-id"] = f"session-{message['id']}"
        return response


class _Session(_Changed):
    session: ClassVar[str] = ""

    eras = ("legacy",)

    def changed(self, response: Response, message: Json) -> Response:
        if message["method"] == "initialize":
            response.headers["mcp-session-id"] = self.session
        return response


class SessionLong(_Session):
    """The session id has 4,000 characters."""

    session = "x" * 4000


class SessionOdd(_Session):
    """The session id has blanks, quotes, commas and brackets."""

    session = '{"id": "a b", "at": [1, 2]}; path=/'


class SessionEmpty(_Session):
    """The session id is empty."""


class SessionOfModern(_Changed):
    """Answers of the modern era have a session id."""

    eras = ("modern",)

    def changed(self, response: Response, message: Json) -> Response:
        response.headers["mcp-session-id"] = "one"
        return response


class HeadersOfTransport(_Changed):
    """Answers have cookies, a cache's headers and a version that nobody knows."""

    def changed(self, response: Response, message: Json) -> Response:
        response.headers |= {"set-cookie": "a=b", "cache-control": "max-age=60", "etag": '"x"', "mcp-protocol-version": "1.0"}
        return response


class _Told(_Http):
    """What is said to a notification is odd."""

    eras = ("legacy",)
    said: ClassVar[Response] = Response()

    def respond(self, message: Json) -> Response:
        return super().respond(message) if "id" in message else self.said


class ToldNull(_Told):
    """A notification is answered with 200 and `null`."""

    said = Response(200, b"null", {"content-type": "application/json"})


class ToldNothing(_Told):
    """A notification is answered with 200 and an empty JSON."""

    said = Response(200, b"", {"content-type": "application/json"})


class ToldText(_Told):
    """A notification is answered with 200 and a text."""

    said = Response(200, b"ok", {"content-type": "text/plain"})


class ToldNoContent(_Told):
    """A notification is answered with 204."""

    said = Response(204)


class ToldResult(_Told):
    """A notification is answered with a result of no request."""

    said = Response(200, b'{"jsonrpc":"2.0","id":null,"result":{}}', {"content-type": "application/json"})


class ToldIdNull(_Told):
    """A notification is answered with an id that is null, and nothing else."""

    said = Response(200, b'{"jsonrpc":"2.0","id":null}', {"content-type": "application/json"})


class ToldUnknown(_Told):
    """A notification is answered with 200 and the error of an unknown method."""

    said = Response(200, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"x"}}', {"content-type": "application/json"})


class ToldBad(_Told):
    """A notification is answered with 400."""

    said = Response(400, b'{"error":"unknown method"}', {"content-type": "application/json"})


class _Get(_Http):
    """`GET` is answered in an odd way."""

    eras = ("legacy",)
    watched = True
    said: ClassVar[Response] = Response()

    def got(self) -> Response:
        return self.said


class GetJson(_Get):
    """`GET` is answered with JSON."""

    said = Response(200, b'{"status":"ok"}', {"content-type": "application/json"})


class GetPage(_Get):
    """`GET` is answered with a page."""

    said = Response(200, b"<html></html>", {"content-type": "text/html"})


class GetNotFound(_Get):
    """`GET` is answered with 404."""

    said = Response(404, b"Cannot GET /mcp", {"content-type": "text/html"})


class GetFails(_Get):
    """`GET` is answered with 500."""

    said = Response(500, b"", {})


class GetBad(_Get):
    """`GET` is answered with 400, as if there were no session."""

    said = Response(400, b'{"jsonrpc":"2.0","error":{"code":-32000,"message":"No sessionId"},"id":null}', {"content-type": "application/json"})


class GetNoContent(_Get):
    """`GET` is answered with 204."""

    said = Response(204)


class GetSilent(_Get):
    """The stream of `GET` says nothing."""

    said = Response(200, b"", {"content-type": "text/event-stream"}, stays=True)


class GetEnds(_Http):
    """The stream of `GET` ends at once."""

    eras = ("legacy",)
    watched = True
    stream = b"streaming unsupported\n\n"
