"""Accepted disadvantages of Shoal over a direct connection, with reasons."""

from dataclasses import dataclass

BY_LISTS = "Shoal finds the server of a call by its lists, and this one is refused or has no such entry"


@dataclass(frozen=True)
class Accepted:
    """An accepted disadvantage."""

    steps: frozenset[str]
    reason: str


def accepted(steps: str, reason: str) -> Accepted:
    return Accepted(frozenset(steps.split()), reason)


ACCEPTED: dict[str, Accepted] = {
    "id-zero": accepted("connect", "it answers every request with the id 0, so no client gets further than initialize"),
    "tools-error": accepted("call", BY_LISTS),
    "tools-none": accepted("call", BY_LISTS),
    "answers-by-get": accepted("call", "a server that answers by a stream of all requests may have mixed up its callers, so an answer counts in its request's own response"),
    "asks-with-state-object": accepted("call", "a `requestState` is a text by the specification, and Shoal seals it as one"),
    "content-type-missing": accepted("call", "the Python SDK's client takes it in the modern era only"),
    "cookie-alone": accepted("read get call", "without a session id all callers share a connection, and they must not share its cookies"),
    "output-without-type": accepted("call", "directly the client has no list and so no schema to check results by"),
    "slow-start": accepted("tools read get call", "a session's process starts with the session's first call: if it started when the client connects, clients that "
    "call nothing would take the few processes from sessions that keep their state in one"),
    "structured-array": accepted("call", "earlier revisions have objects alone, so legacy clients get the content without it"),
    "structured-nan": accepted("call", "NaN is not JSON; one of the SDKs reads it"),
    "tool-name-empty": accepted("tools", "rules, quotas and metrics name tools"),
    "unlisted-tool": accepted("call", BY_LISTS),
    "tool-name-long": accepted("tools", "the specification has 128 characters at most, and rules, quotas and metrics keep the name"),
}
"""By the oddity of a server."""

ONE_TEXT = "two readers of the message could understand two things, and Shoal would check one and send the other (ADR 49)"
REBINDING = "a browser whose name server lies about the host must not reach Shoal"

ONE_NAME = "some readers replace half of a surrogate pair, and then two names of members are one (ADR 49)"
FOREIGN_PAGE = "any page of a browser could use a server on the reader's machine, so the operator lists origins (`server.allowed_origins`)"
NO_GAP = "the id has the form of Shoal's own, and what followed it is gone: silence would let the client wait for it. The others keep no events"

ACCEPTED_OF_CLIENTS: dict[str, str] = {
    "target-percent": "a proxy in front guards a path as it is written",
    "body-http-1.0-no-host": REBINDING,
    "body-encoding-unknown": "a filter in front does not read a body in an encoding that it does not know, so Shoal must not read it either",
    "header-bare-feed": "a proxy in front may see another end of the head, and so another request (RFC 9112, 11.2)",
    "host-foreign": REBINDING,
    "origin-null": FOREIGN_PAGE,
    "origin-file": FOREIGN_PAGE,
    "origin-extension": FOREIGN_PAGE,
    "envelope-member-twice": ONE_TEXT,
    "params-member-twice": ONE_TEXT,
    "meta-member-twice": ONE_TEXT,
    "arguments-member-twice": ONE_TEXT,
    "arguments-lone-surrogate-name": ONE_NAME,
    "meta-name-lone-surrogate": ONE_NAME,
    "version-two": ONE_TEXT,
    "id-longest": "an id is kept as long as its request, so its length has a limit, 4 KiB",
    "get-event-id-unknown": NO_GAP,
    "get-event-id-unknown-call": NO_GAP,
    "initialize-again": "what a session speaks is settled once: another answer would change that under calls that run",
}
"""By the row of a client."""
