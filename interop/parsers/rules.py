"""The parsing rules of SDK clients that no test runs, from the sources of their HTTP transports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Parser:
    """How a client reads answers over Streamable HTTP."""

    sdk: str
    source: str
    revisions: tuple[str, ...]
    exact_media_type: bool = False
    """The content type must equal a media type, parameters aside; otherwise it must contain it."""
    reads_streams: bool = True
    """Otherwise every answer has to be JSON."""
    untyped: bool = True
    """Reads events without a type."""
    line_feeds_only: bool = False
    """Looks for the end of an event by two line feeds."""
    fields: frozenset[str] | None = None
    """The fields that a stream may have; None: ignores those that it does not know."""
    event_bytes: int | None = None
    """The most that an event may have."""
    listens_by_id: bool = False
    """Opens the standalone stream again only if it has had an event id."""
    error_bodies: frozenset[int] | None = frozenset()
    """The statuses whose body is read as a JSON-RPC error; None: the status is not looked at, so that a refusal without the request's id
    is waited out."""
    statuses: frozenset[int] = frozenset()
    """The statuses of refusals that it tells apart."""


LEGACY = "2025-11-25"
MODERN = "2026-07-28"

PARSERS = [
    Parser(
        "C# 2.2.0",
        "StreamableHttpClientSessionTransport.cs",
        (LEGACY, MODERN),
        exact_media_type=True,
        listens_by_id=True,
        error_bodies=frozenset({400}),
        statuses=frozenset({400, 404}),
    ),
    Parser(
        "Swift 0.12.0",
        "HTTPClientTransport.swift",
        (LEGACY,),
        statuses=frozenset({400, 404}),
    ),
    Parser(
        "Swift 0.12.0 on Linux",
        "HTTPClientTransport.swift",
        (LEGACY,),
        reads_streams=False,
        statuses=frozenset({400, 404}),
    ),
    Parser(
        "Ruby 1.3.0",
        "lib/mcp/client/http.rb",
        (LEGACY, MODERN),
        event_bytes=4 * 1024 * 1024,
        statuses=frozenset({400, 404}),
    ),
    Parser(
        "PHP 0.7.1",
        "src/Client/Transport/HttpTransport.php",
        (LEGACY,),
        line_feeds_only=True,
        event_bytes=8 * 1024 * 1024,
        error_bodies=None,
    ),
    # Other tests run these clients. Here they show that the rules can refuse something.
    Parser(
        "Java 0.18 to 2.0.1, HttpClient",
        "ResponseSubscribers.java",
        (LEGACY,),
        fields=frozenset({"data", "id", "event", ""}),
        statuses=frozenset({400, 404}),
    ),
    Parser(
        "Java 0.17 to 2.0.0, WebClient",
        "WebClientStreamableHttpTransport.java",
        (LEGACY,),
        untyped=False,
        statuses=frozenset({400, 404}),
    ),
]
