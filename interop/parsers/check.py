"""Checks that what Shoal sends can be read by the clients of SDKs that no test runs.

By hand: python3 check.py --url http://127.0.0.1:8080/mcp --json-url URL, where the second server has `server.json_response = true`.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable, Iterator

from exchanges import CALL_ID, Legacy, Modern
from reading import Answer, Read, Unreadable, read, read_stream, refused
from rules import LEGACY, PARSERS, Parser

STEPS = 3


def expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Unreadable(otherwise)


def result_of(got: Read) -> None:
    expect(got.messages[-1].get("id") == CALL_ID, "no answer with the request's id")
    expect("result" in got.messages[-1], f"no result: {got.messages[-1]}")


def short_call(parser: Parser, server: Legacy | Modern) -> None:
    result_of(read(parser, server.call("echo", text="héllo")))


def long_call(parser: Parser, server: Legacy | Modern) -> None:
    got = read(parser, server.call("long_job", steps=STEPS, interval_ms=50))
    result_of(got)
    if parser.reads_streams:
        progress = [message["params"]["progress"] for message in got.messages[:-1]]
        expect(progress == [1, 2, 3], f"progress {progress}")


def notification(_: Parser, server: Legacy | Modern) -> None:
    answer = server.notify()
    expect(answer.status == 202, f"status {answer.status}")
    expect(not answer.body and not answer.content_type, "a body")


def unknown_method(parser: Parser, server: Legacy | Modern) -> None:
    answer = server.unknown_method()
    if answer.status == 200:
        error = read(parser, answer).messages[-1]
        expect(error.get("id") == CALL_ID and "error" in error, "no error with the request's id")
    else:
        refused(parser, answer, CALL_ID)


def bad_request(parser: Parser, server: Legacy | Modern) -> None:
    refused(parser, server.bad_request(), CALL_ID)


def lost_session(parser: Parser, server: Legacy) -> None:
    answer = server.lost_session()
    expect(answer.status == 404, f"status {answer.status}")
    refused(parser, answer, CALL_ID)


def listening(parser: Parser, server: Legacy) -> None:
    """The first event of the standalone stream, and a notification."""
    got = read(parser, server.listen_for("toggle_bonus_tool", "list_changed"))
    methods = [message["method"] for message in got.messages]
    expect("notifications/tools/list_changed" in methods, f"messages {methods}")
    expect(not parser.listens_by_id or bool(got.last_id), "no event id to come back with")


def resumption(parser: Parser, server: Legacy) -> None:
    """Resumes after the first event, which has no message."""
    answer = server.call("long_job", steps=STEPS, interval_ms=50)
    first = read(parser, dataclasses.replace(answer, body=answer.body.split(b"\n\n")[0]))
    expect(bool(first.last_id) and not first.messages, "no event id before the first message")
    got = read(parser, server.resume(first.last_id, len(read(parser, answer).messages)))
    result_of(got)
    expect(len(got.messages) == STEPS + 1, f"{len(got.messages)} messages after the first event id")


def checks_of(parser: Parser, revision: str) -> Iterator[Callable[..., None]]:
    yield from (short_call, long_call, notification, unknown_method, bad_request)
    if revision == LEGACY:
        yield lost_session
        if parser.reads_streams:
            yield from (listening, resumption)


def bad_answers() -> Iterator[tuple[str, Callable[[Parser], object]]]:
    """Answers that some clients cannot read, which show that these rules refuse something."""
    message = b'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'
    error = b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}}'
    json_type = {"content-type": "application/json"}
    yield "untyped", lambda parser: read_stream(parser, message)
    crlf = (b"event: message\n" + message).replace(b"\n", b"\r\n")
    yield "carriage_returns", lambda parser: read_stream(parser, crlf * 2)
    yield "retry_first", lambda parser: read_stream(parser, b"retry: 1\n\nevent: message\n" + message)
    large = message.replace(b"{}", b"{" + b" " * 9_000_000 + b"}")
    yield "large_event", lambda parser: read_stream(parser, b"event: message\n" + large)
    yield "type_with_suffix", lambda parser: read(parser, Answer(200, {"content-type": "application/json-rpc"}, error))
    yield "refusal_without_id", lambda parser: refused(parser, Answer(400, json_type, error), 1)
    yield "refusal_in_text", lambda parser: refused(parser, Answer(400, {"content-type": "text/plain"}, b"no"), 1)


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--url", required=True)
    options.add_argument("--json-url", required=True)
    given = options.parse_args()
    failed = 0
    for name, bad in bad_answers():
        refusing = [parser.sdk for parser in PARSERS if not readable(bad, parser)]
        failed += not refusing
        print(
            f"ok rules, {name}: refused by {'; '.join(refusing)}"
            if refusing
            else f"FAIL rules, {name}: nobody refuses it"
        )
    for parser in PARSERS:
        for revision in parser.revisions:
            url = given.url if parser.reads_streams else given.json_url
            server = Legacy(url) if revision == LEGACY else Modern(url)
            for check in checks_of(parser, revision):
                name = f"{parser.sdk}, {revision}, {check.__name__}"
                try:
                    check(parser, server)
                    print(f"ok {name}")
                except (Unreadable, OSError, ValueError, LookupError) as error:
                    failed += 1
                    print(f"FAIL {name}: {type(error).__name__}: {error}")
    return 1 if failed else 0


def readable(bad: Callable[[Parser], object], parser: Parser) -> bool:
    try:
        bad(parser)
    except Unreadable:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
