"""Compares what odd requests get from the four common servers with what they get from Shoal.

`python clients.py --shoal PATH [--only ROW]…`. A row fails if at least two of the four serve it and Shoal does not, or serves something else,
unless accepted.py says why that is so.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import pathlib
import sys
import urllib.parse
from dataclasses import dataclass, replace
from typing import Any

from accepted import ACCEPTED_OF_CLIENTS
from oracle import process, served
from odd_requests import OPENING, Request, Row
from odd_rows import ROWS
from old_stream import old_stream

INTEROP = pathlib.Path(__file__).parents[1]
TOOLS = INTEROP.parent / ".tools"
PYTHON = [sys.executable, "-B", str(INTEROP / "python" / "plain.py")]
TYPESCRIPT = ["node", str(INTEROP / "servers" / "plain.js")]
PEERS = {
    "TypeScript 1": ["node", str(INTEROP / "typescript-v1" / "plain.js")],
    "TypeScript 2": [*TYPESCRIPT, "--http"],
    "Python": [*PYTHON, "--http"],
    "FastMCP": [str(TOOLS / "fastmcp" / "bin" / "python"), "-B", str(INTEROP / "fastmcp" / "plain.py")],
}
BEHIND = {"Shoal, Python": PYTHON, "Shoal, TypeScript": TYPESCRIPT}
"""The servers behind Shoal: what one of them refuses, Shoal may pass on to the other."""
ENOUGH = 2
"""Peers that serve a request, so that Shoal must."""
ANSWER_SECONDS = 15
AT_ONCE = 12
LONGEST_HEAD = 1 << 16


@dataclass(frozen=True)
class Served:
    """The request is served with this content."""

    content: Any = None


@dataclass(frozen=True)
class Refused:
    """The request is refused or not answered."""

    why: str


Outcome = Served | Refused


@dataclass(frozen=True)
class Response:
    status: int
    headers: dict[str, str]
    body: bytes

    def messages(self) -> list[Any]:
        """The messages of JSON or a stream."""
        text = self.body.decode(errors="replace")
        if "text/event-stream" in self.headers.get("content-type", ""):
            data = [line.removeprefix("data:").strip() for line in text.splitlines() if line.startswith("data:")]
        else:
            data = [text]
        found: list[Any] = []
        for each in data:
            with contextlib.suppress(json.JSONDecodeError):
                read = json.loads(each)
                found += read if isinstance(read, list) else [read]
        return [message for message in found if isinstance(message, dict)]


async def exchange(port: int, sent: bytes, ends: bool) -> Response:
    """Sends bytes on a new connection, which may end the sending, and reads one response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=LONGEST_HEAD)
    try:
        writer.write(sent)
        await writer.drain()
        if ends:
            writer.write_eof()
        status = 100
        while status == 100:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            status = int(head[0].split()[1])
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        method = sent.split(b" ", 1)[0].upper()
        if method == b"HEAD" or status in (204, 304) or method == b"GET" and "event-stream" in headers.get("content-type", ""):
            return Response(status, headers, b"")
        return Response(status, headers, await body(reader, headers))
    finally:
        writer.close()


async def body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding") == "chunked":
        whole = b""
        while size := int(await reader.readline(), 16):
            whole += await reader.readexactly(size)
            await reader.readline()
        return whole
    if "content-length" in headers:
        return await reader.readexactly(int(headers["content-length"]))
    return await reader.read()


def content(result: Any) -> Any:
    """The part of a result that does not depend on the server."""
    if not isinstance(result, dict):
        return result
    if "protocolVersion" in result:
        return result["protocolVersion"]
    if "tools" in result:
        return sorted(tool["name"] for tool in result["tools"])
    for texts in ("content", "contents"):
        if texts in result:
            return [each.get("text") for each in result[texts]]
    return None


def outcome(request: Request, response: Response) -> Outcome:
    """Whether a request is served."""
    if response.status >= 300:
        return Refused(str(response.status))
    messages = response.messages()
    if errors := [message["error"] for message in messages if message.get("error") is not None]:
        return Refused(str(errors[0].get("code")))
    results = [message["result"] for message in messages if "result" in message]
    if any(isinstance(result, dict) and result.get("isError") for result in results):
        return Refused("isError")
    if request.asks and not results:
        return Refused(f"{response.status} without a result")
    contents = [content(result) for result in results]
    if request.fits is not None and contents != [[request.fits]]:
        return Refused(f"{contents} instead of {request.fits}")
    return Served(contents)


class Client:
    """A client that sends exactly what it is told."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._session = ""

    async def send(self, request: Request) -> Outcome:
        sent = request.encoded(f"127.0.0.1:{self._port}", self._session)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                response = await exchange(self._port, sent, request.ends)
        except TimeoutError:
            return Refused("no answer")
        except (OSError, asyncio.IncompleteReadError, ValueError):
            return Refused("closed")
        self._session = response.headers.get("mcp-session-id", self._session)
        return outcome(request, response)


async def got_on_stream(port: int, row: Row) -> Outcome:
    """Returns the outcome of a row's requests over HTTP+SSE."""
    contents = []
    try:
        async with asyncio.timeout(ANSWER_SECONDS * (1 + len(row.requests))), old_stream(port) as (stream, endpoint):
            for request in row.requests:
                response = await exchange(port, request.encoded(f"127.0.0.1:{port}", endpoint), request.ends)
                found = outcome(replace(request, asks=False), response)
                if isinstance(found, Served) and request.asks:
                    answer = await stream.answer(json.loads(request.body)["id"])
                    found = outcome(request, Response(200, {}, answer))
                if isinstance(found, Refused):
                    return found
                contents.append(found.content)
    except TimeoutError:
        return Refused("no answer")
    except (OSError, asyncio.IncompleteReadError, ValueError):
        return Refused("closed")
    return Served(contents)


async def got(port: int, row: Row) -> Outcome:
    """The outcomes of a row's requests: all, or the first refusal."""
    if row.old:
        return await got_on_stream(port, row)
    client = Client(port)
    for request in OPENING if row.opened else ():
        if isinstance(refused := await client.send(request), Refused):
            return Refused(f"no session: {refused.why}")
    if row.at_once:
        outcomes = list(await asyncio.gather(*map(client.send, row.requests)))
    else:
        outcomes = [await client.send(request) for request in row.requests]
    refused = next((each for each in outcomes if isinstance(each, Refused)), None)
    return refused or Served([each.content for each in outcomes if isinstance(each, Served)])


def verdict(name: str, outcomes: dict[str, Outcome]) -> str:
    """`ok`, or what is worse than at the peers."""
    serving = [each for peer in PEERS if isinstance(each := outcomes[peer], Served)]
    through = [outcomes[behind] for behind in BEHIND]
    if len(serving) < ENOUGH or any(each in serving for each in through):
        return "ok"
    said = f"{len(serving)} of {len(PEERS)} serve it, "
    refusals = [each.why for each in through if isinstance(each, Refused)]
    contents = f"serves {through[0]} instead of {serving[0]}"
    said += f"Shoal says {', '.join(refusals) or contents}"
    reason = ACCEPTED_OF_CLIENTS.get(name)
    return f"skip: {said}: {reason}" if reason else f"FAIL: {said}"


def told(outcomes: dict[str, Outcome]) -> str:
    """One cell for each server."""
    return ", ".join(f"{name} {'ok' if isinstance(each, Served) else each.why}" for name, each in outcomes.items())


async def measured(name: str, ports: dict[str, int]) -> tuple[dict[str, Outcome], str]:
    outcomes = dict(zip(ports, await asyncio.gather(*(got(port, ROWS[name]) for port in ports.values()))))
    if name.startswith("plain-"):
        # If even this is refused, the table proves nothing.
        unserved = [each for each, found in outcomes.items() if isinstance(found, Refused)]
        return outcomes, f"FAIL: not served by {', '.join(unserved)}" if unserved else "ok"
    return outcomes, verdict(name, outcomes)


def serving(shoal: str, words: list[str]) -> list[str]:
    """Shoal before a server whose processes all sessions share, because each row opens sessions."""
    server = f'{{ command = {json.dumps(words[0])}, args = {json.dumps(words[1:])}, isolation = "shared" }}'
    return ["env", f"SHOAL_POOLS__PLAIN__BACKEND__STDIO={server}", shoal, "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shoal", required=True)
    parser.add_argument("--only", action="append", default=[], choices=list(ROWS))
    args = parser.parse_args()
    limit = asyncio.Semaphore(AT_ONCE)
    async with contextlib.AsyncExitStack() as started:
        running = {name: await started.enter_async_context(process(*words)) for name, words in PEERS.items()}
        shoals = {name: await started.enter_async_context(process(*serving(args.shoal, words))) for name, words in BEHIND.items()}
        ports = {name: int(await each.stdout.readline()) for name, each in running.items()}
        for name, shoal in shoals.items():
            if (url := await served(shoal)) is None:
                print(f"FAIL {name}: Shoal does not start")
                return 1
            ports[name] = urllib.parse.urlsplit(url).port or 0

        async def limited(name: str) -> tuple[str, dict[str, Outcome], str]:
            async with limit:
                outcomes, said = await measured(name, ports)
                # A failure caused by a busy machine passes in the second attempt.
                if said.startswith("FAIL"):
                    outcomes, said = await measured(name, ports)
                return name, outcomes, said

        failed = 0
        for name, outcomes, said in await asyncio.gather(*map(limited, args.only or ROWS)):
            failed += said.startswith("FAIL")
            word, _, why = said.partition(": ")
            print(f"{word} {name}{f': {why}' if why else ''} ({told(outcomes)})", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
