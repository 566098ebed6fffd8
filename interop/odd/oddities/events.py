"""How answers come as events."""

from __future__ import annotations

import json

from plain import TOOLS, WHY, Json, Plain, Refused, Response


class _Events(Plain):
    """Each answer is a stream."""

    transports = ("http",)

    def one(self, reply: Json) -> Response:
        return self.events([reply])


class Events(_Events):
    """Each answer is a stream of one event."""


class EventsUpperCase(_Events):
    """The type of streams is in upper case."""

    def events(self, replies: list[Json], *, stays: bool = False) -> Response:
        response = super().events(replies, stays=stays)
        response.headers["content-type"] = "Text/Event-Stream;Charset=UTF-8"
        return response


class EventsCrlf(_Events):
    """Lines of events end as on Windows, and the type has a character set."""

    def events(self, replies: list[Json], *, stays: bool = False) -> Response:
        response = super().events(replies, stays=stays)
        response.headers["content-type"] = "text/event-stream; charset=utf-8"
        return response

    def event(self, data: bytes) -> bytes:
        return super().event(data).replace(b"\n", b"\r\n")


class EventsCr(_Events):
    """Lines of events end with a carriage return alone."""

    def event(self, data: bytes) -> bytes:
        return super().event(data).replace(b"\n", b"\r")


class EventsNameless(_Events):
    """Events have no name, and no blank behind the colon."""

    def event(self, data: bytes) -> bytes:
        return b"data:" + data + b"\n\n"


class EventsInLines(_Events):
    """A message is in several lines of an event."""

    def event(self, data: bytes) -> bytes:
        lines = json.dumps(json.loads(data), indent=1).encode().split(b"\n")
        return b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"


class EventsWithComments(_Events):
    """Comments and events of other kinds come ahead of each event."""

    def event(self, data: bytes) -> bytes:
        return b": ping\n\n:\nevent: ping\ndata: now\n\nevent: heartbeat\ndata\n\nfield: x\nretry: soon\n" + super().event(data)


class EventsWithId(_Events):
    """A stream begins with an event that has an id and no data, as 2025-11-25 has it."""

    def events(self, replies: list[Json], *, stays: bool = False) -> Response:
        response = super().events(replies, stays=stays)
        response.body = b"id: 1/0\nretry: 100\ndata: \n\n" + response.body
        return response


class EventsWithOddId(_Events):
    """Ids of events are not ASCII, empty or long."""

    def event(self, data: bytes) -> bytes:
        return b"id: \xc3\xa4\nid\nid: " + b"x" * 2000 + b"\n" + super().event(data)


class EventsBom(_Events):
    """A stream begins with a byte order mark."""

    def events(self, replies: list[Json], *, stays: bool = False) -> Response:
        response = super().events(replies, stays=stays)
        response.body = b"\xef\xbb\xbf" + response.body
        return response


class EventsUnended(_Events):
    """The last event has no blank line behind it."""

    def events(self, replies: list[Json], *, stays: bool = False) -> Response:
        response = super().events(replies, stays=stays)
        if not stays:
            response.body = response.body[:-1]
        return response


class EventsStay(_Events):
    """A stream does not end behind its answer."""

    def events(self, replies: list[Json], *, stays: bool = False) -> Response:
        return super().events(replies, stays=True)


class EventsWithText(_Events):
    """An event ahead of each message is no JSON."""

    def event(self, data: bytes) -> bytes:
        return b"event: message\ndata: [DONE]\n\n" + super().event(data)


class EventsAnswerFirst(_Events):
    """A notification follows the answer on its stream."""

    def after(self, method: str) -> list[Json]:
        return [{"jsonrpc": "2.0", "method": "notifications/odd"}]

    def answer_last(self, replies: list[Json]) -> list[Json]:
        return replies


class EventsNamedError(_Events):
    """A tool fails by an event of the type `error`."""

    expected = {"call": WHY}

    def call(self, name: str, arguments: Json) -> object:
        raise Refused(-32000, WHY)

    def event(self, data: bytes) -> bytes:
        event = super().event(data)
        return event.replace(b"event: message", b"event: error") if b'"error"' in data else event


class EventLarge(_Events):
    """The tools have 3 MB and come in one event."""

    def tools(self, cursor: str | None) -> object:
        long = "x" * 3000
        return {"tools": [*TOOLS, *({**TOOLS[0], "name": f"large{number}", "description": long} for number in range(1000))]}
