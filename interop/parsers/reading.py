"""Reads answers as a `Parser` says."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from rules import Parser

STREAM = "text/event-stream"
JSON = "application/json"


class Unreadable(Exception):
    """The client cannot use this answer."""


@dataclass(frozen=True)
class Answer:
    """An answer as it came."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")


@dataclass(frozen=True)
class Read:
    """The messages that a client has read from an answer."""

    messages: list[Any]
    last_id: str | None = None


def is_type(parser: Parser, answer: Answer, media_type: str) -> bool:
    if parser.exact_media_type:
        return answer.content_type.split(";")[0].strip() == media_type
    return media_type in answer.content_type


def read(parser: Parser, answer: Answer) -> Read:
    """The messages of an answer with a status of success."""
    if is_type(parser, answer, JSON):
        return Read([json.loads(answer.body)])
    if not is_type(parser, answer, STREAM):
        raise Unreadable(f"a content type {answer.content_type!r}")
    if not parser.reads_streams:
        raise Unreadable("a stream")
    return read_stream(parser, answer.body)


def read_stream(parser: Parser, body: bytes) -> Read:
    messages, last_id = [], None
    for event in re.split(r"\n\n" if parser.line_feeds_only else r"\r\n\r\n|\n\n|\r\r", body.decode()):
        if parser.event_bytes is not None and len(event.encode()) > parser.event_bytes:
            raise Unreadable(f"an event of more than {parser.event_bytes} bytes")
        fields: dict[str, list[str]] = {}
        for line in filter(None, re.split(r"\r\n|\n|\r", event)):
            name, _, value = line.partition(":")
            if parser.fields is not None and name not in parser.fields:
                raise Unreadable(f"a line {line!r}")
            fields.setdefault(name, []).append(value.removeprefix(" "))
        last_id = fields.get("id", [last_id])[-1]
        data = "\n".join(fields.get("data", []))
        if not data:
            continue
        if "event" not in fields and not parser.untyped:
            raise Unreadable("an event without a type")
        try:
            messages.append(json.loads(data))
        except ValueError as error:
            raise Unreadable(f"an event whose data is no JSON: {error}") from error
    return Read(messages, last_id)


def refused(parser: Parser, answer: Answer, request_id: Any) -> None:
    """Whether the client learns that its request was refused."""
    if parser.error_bodies is None:
        if not is_type(parser, answer, JSON):
            raise Unreadable(f"a refusal of type {answer.content_type!r}, which it waits out")
        if json.loads(answer.body).get("id") != request_id:
            raise Unreadable("a refusal without the request's id, which it waits out")
        return
    if parser.statuses and answer.status not in parser.statuses:
        raise Unreadable(f"a refusal with the status {answer.status}")
    if answer.status in parser.error_bodies:
        if not is_type(parser, answer, JSON) or "error" not in json.loads(answer.body):
            raise Unreadable(f"a refusal with the status {answer.status} and no JSON-RPC error")
