"""Compares the requests that Shoal sends with what the OpenAPI Specification says, and with what FastMCP sends.

    compare.py --shoal PROGRAM [--calls N] [--seed N] [--fastmcp] [DOCUMENT…]

Each call has arguments that are made from its operation. `encode.py` says what its request must be, by the text of the
specification alone. With --fastmcp the same call is made by FastMCP's `from_openapi`: where its request is another one than
the specification says, `FASTMCP` must name the reason. It may not have a tool that Shoal has not.
"""

from __future__ import annotations

import argparse
import email.parser
import email.policy
import json
import logging
import os
import random
import re
import sys
from pathlib import Path
from urllib.parse import unquote

import yaml
from documents import Document, Operation
from encode import Expected, expected
from generate import arguments
from recorder import Recorder, Request
from shoal import Shoal

HERE = Path(__file__).parent
SAMPLE = sorted([*HERE.glob("documents/*.yaml"), *HERE.glob("documents/*/openapi.yaml")])

# Why FastMCP's requests differ from the specification, by operation.
FASTMCP = {
    "pathSimple": "until 4.2: writes lists and objects in paths as Python has them (OAS 3.0.3, Parameter Object, Style Values)",
    "pathSimpleExploded": "the same",
    "headers": "until 4.2: sends no request with a list or an object in a header (the same)",
    "pathLabel": "knows no style label (OAS 3.0.3, Parameter Object, Style Values)",
    "pathMatrix": "knows no style matrix (the same)",
    "queryForm": "encodes the commas that delimit a list (RFC 6570, 3.2.8: only values are encoded)",
    "queryContent": "ignores `content` of parameters (OAS, Parameter Object: the media type says how a value is written)",
    "cookies": "writes lists in cookies as Python has them",
    "form": "ignores style and explode in `encoding` of forms (OAS, Encoding Object)",
    "upload": "sends files as the text of their Base64, and not as their bytes (OAS, Considerations for File Uploads)",
    "uploadPerhaps": "the same",
    "bytes": "the same, of a whole body",
    "getVault": "drops the query of a path as soon as a parameter has a value",
    "getOperation": "knows no names with patterns in paths (google.api.http)",
    "getProject": "knows no {+name} in paths (RFC 6570, 3.2.3)",
    "readFile": "encodes what is reserved in spite of allowReserved",
    "getAccount": "repeats the bare name for lists of the style deepObject, which OAS leaves open: Stripe documents expand[]",
    "postSubscriptions": "ignores deepObject in `encoding` of forms (OAS, Encoding Object)",
}


def pairs_of(text: str) -> list[str]:
    """Decodes characters that need no encoding, so that equivalent pairs are equal."""
    return [pair.replace("+", "%20") for pair in text.split("&") if pair]


def plain(pair: str) -> str:
    """Decodes a pair, but keeps delimiters and encoded characters apart."""
    return unquote(pair.replace("%25", "%2525").replace("%2C", "%252C").replace("%26", "%2526").replace("%3D", "%253D"))


def normal(path: str) -> str:
    """A path as RFC 3986 (6.2.2.2) normalizes it: unreserved characters are not encoded."""
    unreserved = re.compile(r"%(2[DE]|5F|7E|3\d|[46][1-9A-F]|[57][0-9A])", re.IGNORECASE)
    return unreserved.sub(lambda found: unquote(found[0]), path)


def parts(request: Request) -> list[tuple]:
    head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + request.body)
    found = []
    for part in message.iter_parts():
        content = part.get_payload(decode=True)
        found.append((part.get_param("name", header="content-disposition"), part.get_content_type(), content, part.get_filename() is not None))
    return found


def differences(request: Request | None, wanted: Expected) -> list[str]:
    if request is None:
        return ["no request was sent"]
    found = []

    def compare(what: str, got: object, want: object) -> None:
        if got != want:
            found.append(f"{what}: {got!r}, not {want!r}")

    compare("method", request.method, wanted.method)
    compare("path", normal(request.path), normal(wanted.path))
    compare("query", sorted(map(plain, pairs_of("&".join(request.query)))), sorted(map(plain, wanted.query)))
    for name, value in wanted.headers.items():
        compare(f"header {name}", request.headers.get(name), value)
    cookies = [cookie for cookie in request.headers.get("cookie", "").split("; ") if cookie]
    compare("cookies", sorted(cookies), sorted(wanted.cookies))
    media, body = wanted.body or ("", b"")
    if wanted.body:
        compare("media type", request.headers.get("content-type", "").partition(";")[0], media)
    if media.endswith("json"):
        try:
            compare("body", json.loads(request.body or b"null"), body)
        except ValueError:
            found.append(f"body: {request.body!r} is no JSON")
    elif media == "application/x-www-form-urlencoded":
        compare("form", sorted(map(plain, pairs_of(request.body.decode()))), sorted(map(plain, body)))
    elif media == "multipart/form-data":
        is_form = request.headers.get("content-type", "").startswith("multipart/")
        compare("parts", parts(request) if is_form else request.body, body)
    else:
        compare("body", request.body, body)
    return found


def shaped(tool: dict, operation: Operation, given: dict, body: object) -> dict:
    """Arguments as a tool names them."""
    properties = tool["inputSchema"].get("properties", {})
    placed = {(place, name): f"{name}__{place}" for place, name in given}
    # FastMCP adds the place to a parameter's name if a property of the body has the same name.
    made = {placed[key] if placed[key] in properties else listed(properties, key[1]): value for key, value in given.items()}
    if body is None:
        return made
    named = operation.body.schema.get("properties") or body
    is_whole = "body" in properties and ("body" not in named or not all(listed(properties, name) in properties for name in named))
    if is_whole or not isinstance(body, dict):
        return made | {"body": body}
    return made | {listed(properties, name): value for name, value in body.items()}


def listed(properties: dict, name: str) -> str:
    """The tool's name for a name in the document, with some characters replaced."""
    if name in properties:
        return name
    alike = [other for other in properties if letters(other) == letters(name)]
    return alike[0] if len(alike) == 1 else name


def letters(name: str) -> str:
    return re.sub("[^A-Za-z0-9]", "", name)


class FastMcp:
    """FastMCP before the same service."""

    def __init__(self, document: Document, url: str) -> None:
        import asyncio

        # Its answers report refusals.
        os.environ["FASTMCP_LOG_ENABLED"] = "false"
        logging.disable(logging.CRITICAL)
        import httpx2
        from fastmcp import Client, FastMCP

        self.loop = asyncio.new_event_loop()
        spec = json.loads(json.dumps(document.root, default=str))
        server = FastMCP.from_openapi(spec, client=httpx2.AsyncClient(base_url=url))
        self.client = Client(server)
        self.loop.run_until_complete(self.client.__aenter__())
        tools = self.loop.run_until_complete(self.client.list_tools())
        self.tools = {tool.name: {"inputSchema": getattr(tool, "inputSchema", None) or tool.input_schema} for tool in tools}

    def call(self, name: str, given: dict) -> None:
        self.loop.run_until_complete(self.client.call_tool(name, given, raise_on_error=False))

    def close(self) -> None:
        self.loop.run_until_complete(self.client.__aexit__(None, None, None))
        self.loop.close()


class Comparison:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.calls = self.wrong = self.explained = self.same = 0
        self.seen: set[str] = set()

    def document(self, file: Path, recorder: Recorder) -> None:
        document = Document(file)
        operations = document.operations()
        other = self.other(document, recorder.url)
        try:
            self.run(document, operations, other, recorder)
        except RuntimeError as error:
            self.fail(f"{file.name}: {str(error)[-300:]}")
        finally:
            if other:
                other.close()

    def run(self, document: Document, operations: list[Operation], other: FastMcp | None, recorder: Recorder) -> None:
        file = document.file
        with Shoal(self.options.shoal, file, recorder.url) as shoal:
            tools = shoal.tools()
            self.count(file, operations, tools, other)
            rng = random.Random(f"{self.options.seed} {file.name}")
            each = max(1, self.options.calls // (len(operations) * len(self.options.documents)))
            for operation in operations:
                if operation.id in tools:
                    for _ in range(each):
                        self.call(shoal, tools[operation.id], operation, rng, recorder, other)

    def other(self, document: Document, url: str) -> FastMcp | None:
        if not self.options.fastmcp:
            return None
        try:
            return FastMcp(document, url)
        except Exception as error:
            print(f"  {document.file.name}: FastMCP cannot read it: {type(error).__name__}: {str(error)[:100]!r}")
            return None

    def count(self, file: Path, operations: list[Operation], tools: dict, other: FastMcp | None) -> None:
        missing = [operation.id for operation in operations if operation.id not in tools]
        theirs = f", FastMCP {len(other.tools)}" if other else ""
        print(f"  {file.name}: {len(operations)} operations, {len(tools)} tools{theirs}")
        if missing:
            self.fail(f"{file.name}: no tool for {', '.join(missing)}")
        if other and len(other.tools) > len(tools):
            self.fail(f"{file.name}: FastMCP has {sorted(set(other.tools) - set(tools))} besides")

    def call(self, shoal: Shoal, tool: dict, operation: Operation, rng: random.Random, recorder: Recorder, other: FastMcp | None) -> None:
        given, body = arguments(rng, operation)
        wanted = expected(operation, given, body)
        self.calls += 1
        made = shaped(tool, operation, given, body)
        why = shoal.call(tool["name"], made)
        found = differences(recorder.take(), wanted)
        if found or why:
            self.fail(f"{operation.id} {json.dumps(made)}: {'; '.join(found)}{f' ({why})' if why else ''}")
        if other and operation.id in other.tools:
            try:
                other.call(operation.id, shaped(other.tools[operation.id], operation, given, body))
            except Exception as error:
                recorder.take()
                theirs = [f"refused: {str(error)[:80]}"]
            else:
                theirs = differences(recorder.take(), wanted)
            if not theirs:
                self.same += 1
            elif operation.id in FASTMCP:
                self.explained += 1
                if operation.id not in self.seen and self.options.why:
                    print(f"    {operation.id} {json.dumps(made)}: {'; '.join(theirs)}")
                self.seen.add(operation.id)
            else:
                self.fail(f"{operation.id} {json.dumps(made)}: FastMCP differs without a reason that is known: {'; '.join(theirs)}")

    def fail(self, why: str) -> None:
        self.wrong += 1
        if self.wrong <= 20:
            print(f"WRONG {why}")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--shoal", required=True)
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fastmcp", action="store_true")
    parser.add_argument("--why", action="store_true", help="show one of each operation's explained differences")
    parser.add_argument("documents", nargs="*", type=Path)
    options = parser.parse_args()
    options.documents = options.documents or SAMPLE
    comparison = Comparison(options)
    with Recorder() as recorder:
        for file in options.documents:
            comparison.document(file, recorder)
    unneeded = set(FASTMCP) - comparison.seen
    if options.fastmcp and options.documents == SAMPLE and unneeded:
        print(f"This FastMCP needs no reason for {', '.join(sorted(unneeded))}")
    print(f"{comparison.calls} calls, {comparison.wrong} wrong", end="")
    print(f"; FastMCP: {comparison.same} the same, {comparison.explained} explained" if options.fastmcp else "")
    return 1 if comparison.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
