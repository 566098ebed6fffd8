"""HTTP answers of servers, except event streams."""

from __future__ import annotations

import json
import queue
import zlib
from collections.abc import Iterator, Mapping
from typing import ClassVar

from plain import FAILS, WHY, Json, Plain, Refused, Response


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
        import gzip

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
    """Answers without a body claim to be gzip."""

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

    def posted(self, path: str, message: Json, headers: Mapping[str, str]) -> Response:
        return self.respond(message) if path.endswith("/") else Response(307, headers={"location": path + "/"})


class NewSessions(_Changed):
    """Each answer has another session id, and incoming ones are ignored."""

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
    """Answers have cookies, a cache's headers and an unknown version."""

    def changed(self, response: Response, message: Json) -> Response:
        response.headers |= {"set-cookie": "a=b", "cache-control": "max-age=60", "etag": '"x"', "mcp-protocol-version": "1.0"}
        return response


class _Told(_Http):
    """The answer to a notification is odd."""

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


class _CookiesOfBalancer(_Http):
    """A load balancer keeps each client at its server by cookies, and the servers know their own sessions alone."""

    eras = ("legacy",)
    cookies: ClassVar[tuple[str, ...]] = ("AWSALB=one; Expires=Fri, 01 Jan 2100 00:00:00 GMT; Path=/",)
    wanted: ClassVar[tuple[str, ...]] = ("AWSALB=one",)

    def posted(self, path: str, message: Json, headers: Mapping[str, str]) -> Response:
        brought = [each.strip() for each in headers.get("cookie", "").split(";")]
        if message.get("method") != "initialize" and not all(each in brought for each in self.wanted):
            body = json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "Session not found"}})
            return Response(404, body.encode(), {"content-type": "application/json"})
        response = self.respond(message)
        response.cookies = self.cookies
        return response


class CookieSticky(_CookiesOfBalancer):
    """A load balancer wants its cookie back."""


class CookiesTwo(_CookiesOfBalancer):
    """A load balancer wants two cookies back, the second of which has no attributes."""

    cookies = (*_CookiesOfBalancer.cookies, "AWSALBCORS=two")
    wanted = ("AWSALB=one", "AWSALBCORS=two")


class CookieAlone(_CookiesOfBalancer):
    """A server knows its sessions by a cookie, and gives no session id."""

    def respond(self, message: Json) -> Response:
        response = super().respond(message)
        response.headers.pop("mcp-session-id", None)
        return response


class CookieRenewed(_CookiesOfBalancer):
    """Each answer has another value of the cookie, and only the newest one is known."""

    def __init__(self, era: str) -> None:
        super().__init__(era)
        self.values = 0

    def posted(self, path: str, message: Json, headers: Mapping[str, str]) -> Response:
        self.wanted = (f"AWSALB={self.values}",)  # type: ignore[misc]
        if message.get("method") == "tools/list":
            self.values += 1
        self.cookies = (f"AWSALB={self.values}; Path=/",)  # type: ignore[misc]
        return super().posted(path, message, headers)


class CookiesMany(_Changed):
    """Each answer has ten cookies of 1,000 bytes, and wants none back."""

    eras = ("legacy",)

    def changed(self, response: Response, message: Json) -> Response:
        response.cookies = tuple(f"c{message['id']}-{number}={'x' * 1000}; Path=/" for number in range(10))
        return response


class _ManyHeaders(_Changed):
    count: ClassVar[int] = 0

    def changed(self, response: Response, message: Json) -> Response:
        response.headers |= {f"x-{number}": "1" for number in range(self.count)}
        return response


class HeadersMany(_ManyHeaders):
    """Answers have 120 headers."""

    count = 120


class HeadersVeryMany(_ManyHeaders):
    """Answers have 400 headers."""

    count = 400


class HeaderLong(_Changed):
    """Answers have a header of 12,000 bytes."""

    def changed(self, response: Response, message: Json) -> Response:
        response.headers["content-security-policy"] = "x" * 12_000
        return response


class _Refuses(_Changed):
    """A tool fails by an error that has no id of its own."""

    status: ClassVar[int] = 400
    error: ClassVar[Json] = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": WHY}}

    def changed(self, response: Response, message: Json) -> Response:
        if message["method"] != "tools/call":
            return response
        return Response(self.status, json.dumps(self.error).encode(), {"content-type": "application/json"})


class RefusedOk(_Refuses):
    """A tool fails with 200 and an error whose id is null."""

    expected = {"call": WHY}
    status = 200


class RefusedBadRequest(_Refuses):
    """A tool fails with 400 and an error whose id is null."""


class RefusedUnauthorized(_Refuses):
    """A tool fails with 401 and an error whose id is null."""

    status = 401


class RefusedForbidden(_Refuses):
    """A tool fails with 403 and an error whose id is null."""

    status = 403


class RefusedNotFound(_Refuses):
    """A tool fails with 404 and an error whose id is null."""

    status = 404


class RefusedUnprocessable(_Refuses):
    """A tool fails with 422 and an error whose id is null."""

    status = 422


class RefusedInternal(_Refuses):
    """A tool fails with 500 and an error whose id is null."""

    status = 500


class RefusedUnavailable(_Refuses):
    """A tool fails with 503 and an error whose id is null."""

    status = 503


class RefusedWithoutId(_Refuses):
    """A tool fails with 400 and an error without an id."""

    error = {"jsonrpc": "2.0", "error": {"code": -32000, "message": WHY}}


class RefusedInternalWithoutId(_Refuses):
    """A tool fails with 500 and an error without an id."""

    status = 500
    error = {"jsonrpc": "2.0", "error": {"code": -32000, "message": WHY}}


class RefusedOtherId(_Refuses):
    """A tool fails with 400 and an error that has the id of no request."""

    error = {"jsonrpc": "2.0", "id": "server-error", "error": {"code": -32000, "message": WHY}}


class RefusedBare(_Refuses):
    """A tool fails with 400 and an error that is no JSON-RPC."""

    error = {"error": WHY}


class RefusedDetail(_Refuses):
    """A tool fails with 500 and an error as of FastAPI."""

    status = 500
    error = {"detail": WHY}


class RefusedPlain(_Refuses):
    """A tool is refused with 403 and a text."""

    def changed(self, response: Response, message: Json) -> Response:
        return Response(403, WHY.encode(), {"content-type": "text/plain"}) if message["method"] == "tools/call" else response


class ToldNotFound(_Told):
    """A notification is answered with 404."""

    said = Response(404, b"Not found", {"content-type": "text/plain"})


class ToldFails(_Told):
    """A notification is answered with 500."""

    said = Response(500, b"", {})


class HangsUp(_Changed):
    """Each answer ends its connection, although it says that the connection goes on."""

    def changed(self, response: Response, message: Json) -> Response:
        response.hangs_up = True
        return response


class OldHttp(_Changed):
    """Answers are of HTTP/1.0, as those of Python's own server by default."""

    def changed(self, response: Response, message: Json) -> Response:
        response.old = True
        return response


class Chunks(_Changed):
    """Answers come in chunks of one byte."""

    def changed(self, response: Response, message: Json) -> Response:
        response.chunked = not response.stays
        return response


class AnswersByGet(_Http):
    """A call is answered with 202, and its result comes by the stream of `GET`."""

    eras = ("legacy",)

    def __init__(self, era: str) -> None:
        super().__init__(era)
        self.late: queue.Queue[Json] = queue.Queue()

    def respond(self, message: Json) -> Response:
        if message.get("method") != "tools/call":
            return super().respond(message)
        for reply in self.replies(message):
            self.late.put(reply)
        return Response(202)

    def got(self) -> Response:
        def events() -> Iterator[bytes]:
            yield b": open\n\n"
            while True:
                yield self.event(self.encoded(self.late.get(), framed=False))

        return Response(200, headers={"content-type": "text/event-stream"}, framed=False, parts=events())
