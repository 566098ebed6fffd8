"""What may be worse through Shoal than directly, and why."""

ACCEPTED: dict[str, str] = {
    "id-zero": "it answers every request with the id 0, so no client gets further than initialize",
    "tools-error": "Shoal finds the server of a call by the list of tools, which this server refuses",
    "slow-start": "a session's process starts with the session's first call, and not when its client connects",
}
"""By the oddity of a server."""

ONE_TEXT = "two readers of the message could understand two things, and Shoal would check one and send the other (ADR 49)"
REBINDING = "a browser whose name server lies about the host must not reach Shoal"

ACCEPTED_OF_CLIENTS: dict[str, str] = {
    "target-percent": "a proxy in front guards a path as it is written",
    "body-http-1.0-no-host": REBINDING,
    "host-foreign": REBINDING,
    "origin-null": "a page without an origin is foreign until the operator lists `null`",
    "envelope-member-twice": ONE_TEXT,
    "arguments-member-twice": ONE_TEXT,
    "arguments-lone-surrogate": ONE_TEXT,
    "version-two": ONE_TEXT,
    "id-long": "an id is kept as long as its request, so its length has a limit, 256 bytes",
    "cursor-unknown": "the specification wants -32602; these servers have one page and do not read cursors",
    "initialize-again": "what a session speaks is settled once: another answer would change that under calls that run",
}
"""By the row of a client."""
