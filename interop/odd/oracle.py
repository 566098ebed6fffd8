"""Compares what the official Python and TypeScript SDKs' clients get from odd servers directly with what they get through Shoal.

`python oracle.py --shoal PATH [--only ODDITY]… [--transport stdio|http]`. A cell fails if something is worse through Shoal than directly,
unless accepted.py says why that is so.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import pathlib
import re
import sys
import tempfile
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from mcp import Client, StdioServerParameters

import oddities
from accepted import ACCEPTED

SERVER = pathlib.Path(__file__).with_name("server.py")
TYPESCRIPT = pathlib.Path(__file__).parents[1] / "typescript" / "odd.js"
STEP_SECONDS = 8
START_SECONDS = 40
WATCHED_SECONDS = 6
MOST_READINGS = 12
"""How often the lists may be read in that time."""
ERAS = {"legacy": "legacy", "modern": "auto"}
AT_ONCE = 8

Seen = dict[str, Any]
"""What was got in each step; an exception where that failed."""


async def steps(client: Client) -> Seen:
    """What a client gets."""

    async def tools() -> Any:
        return {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}

    async def resources() -> Any:
        return [str(resource.uri) for resource in (await client.list_resources()).resources]

    async def templates() -> Any:
        return [each.uri_template for each in (await client.list_resource_templates()).resource_templates]

    async def prompts() -> Any:
        return [prompt.name for prompt in (await client.list_prompts()).prompts]

    async def call() -> Any:
        result = await client.call_tool("tool1", {"text": "x"})
        return result.model_dump(include={"content", "structured_content", "is_error"}, exclude_none=True)

    seen: Seen = {}
    for step in (tools, resources, templates, prompts, call):
        seen[step.__name__] = await tried(step)
    return seen


async def tried(step: Callable[[], Awaitable[Any]]) -> Any:
    try:
        async with asyncio.timeout(STEP_SECONDS):
            return await step()
    except Exception as error:
        return error


async def python(words: list[str], era: str) -> Seen:
    """A connection of the Python SDK and all its steps."""
    target = words[0] if len(words) == 1 else StdioServerParameters(command=words[0], args=words[1:])
    mode = ERAS[era]
    seen: Seen = {}
    try:
        async with asyncio.timeout(4 * STEP_SECONDS):
            async with Client(target, mode=mode) as client:
                seen["connect"] = True
                seen |= await steps(client)
    except Exception as error:
        seen.setdefault("connect", error)
    return seen


async def typescript(words: list[str], era: str) -> Seen:
    """The same with the TypeScript SDK."""
    async with process("node", str(TYPESCRIPT), era, str(STEP_SECONDS), *words) as client:
        said = await client.stdout.readline()
    steps = json.loads(said or '{"connect": {"error": "it says nothing"}}')
    return {name: step["got"] if "got" in step else RuntimeError(step["error"]) for name, step in steps.items()}


CLIENTS = {"python": python, "typescript": typescript}


@contextlib.asynccontextmanager
async def process(*words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A program that is ended afterwards."""
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    running = await asyncio.create_subprocess_exec(*words, stdin=nothing, stdout=pipe, stderr=nothing)
    try:
        yield running
    finally:
        with contextlib.suppress(ProcessLookupError):
            running.terminate()
        await running.communicate()


@contextlib.asynccontextmanager
async def odd_server(oddity: str, transport: str, *more: str) -> AsyncIterator[list[str]]:
    """The words after which the server is there: its URL, or the command that starts it."""
    command = [sys.executable, "-B", str(SERVER), oddity, *more]
    if transport == "stdio":
        yield command
        return
    async with process(*command, "--http", "0") as server:
        port = (await server.stdout.readline()).decode().strip()
        yield [f"http://127.0.0.1:{port}/mcp"]


async def directly(oddity: str, transport: str) -> dict[str, Seen]:
    """What each client gets."""
    async with odd_server(oddity, transport) as words:
        return {name: await client(words, "legacy") for name, client in CLIENTS.items()}


async def through_shoal(shoal: str, oddity: str, transport: str) -> dict[tuple[str, str], Seen]:
    """What each client of each era gets, with how often the lists were read."""
    everybody = [(name, era) for name in CLIENTS for era in ERAS]
    with tempfile.NamedTemporaryFile() as log:
        async with odd_server(oddity, transport, "--log", log.name) as words:
            given = words if transport == "http" else ["--", *words]
            serve = [shoal, "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", *given]
            async with process(*serve) as running:
                url = await served(running)
                if url is None:
                    failed = RuntimeError("Shoal does not start")
                    return {who: {"connect": failed} for who in everybody}
                found = {(name, era): await CLIENTS[name]([url], era) for name, era in everybody}
                if oddities.ALL[oddity].watched:
                    await asyncio.sleep(WATCHED_SECONDS)
                    readings = pathlib.Path(log.name).read_text().split().count("tools/list")
                    found[everybody[0]]["quiet"] = readings <= MOST_READINGS or RuntimeError(f"{readings} readings")
                return found


async def served(running: asyncio.subprocess.Process) -> str | None:
    """Where Shoal serves, once it does."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(START_SECONDS):
            while line := (await running.stdout.readline()).decode():
                if found := re.match(r"shoal: serving MCP on (http\S+)", line):
                    return found[1]
    return None


def worse(direct: Seen, shoal: Seen) -> list[str]:
    """The steps that are worse through Shoal, and how."""
    found = []
    for step, expected in direct.items():
        got = shoal.get(step, shoal.get("connect"))
        if isinstance(expected, Exception):
            continue
        if isinstance(got, Exception):
            found.append(f"{step}: {type(got).__name__}: {got}")
        elif step == "tools":
            found += [f"tools: {lost}" for lost in lost_of_tools(expected, got)]
        elif got != expected and not (isinstance(expected, list) and set(expected) <= set(got)):
            found.append(f"{step}: {got!r} instead of {expected!r}")
    if isinstance(shoal.get("quiet"), Exception):
        found.append(f"quiet: {shoal['quiet']}")
    return found


def lost_of_tools(direct: Seen, shoal: Seen) -> list[str]:
    """Tools and parameters that are not there any more. Those of tools that come and go do not count."""
    lost = []
    for name, schema in direct.items():
        if name not in shoal:
            lost += [] if name.startswith("new") else [f"{name} is lost"]
            continue
        lost += [f"{name}: {parameter} is lost" for parameter in parameters(schema) - parameters(shoal[name])]
        if len(shoal) < len(direct):
            lost.append(f"{len(shoal)} tools instead of {len(direct)}")
    return lost


def parameters(schema: Any) -> set[str]:
    """All names of properties, wherever in the schema they stand."""
    if isinstance(schema, list):
        return {name for each in schema for name in parameters(each)}
    if not isinstance(schema, dict):
        return set()
    own = schema.get("properties")
    return set(own if isinstance(own, dict) else ()) | {name for each in schema.values() for name in parameters(each)}


async def row(shoal: str, oddity: str, transport: str) -> list[tuple[str, str, str]]:
    """Oddity, transport, client and era with the verdict, and the steps that fail directly."""
    direct = await directly(oddity, transport)
    found = await through_shoal(shoal, oddity, transport)
    cells = []
    for (client, era), seen in found.items():
        cell = f"{oddity}, {transport}, {client}, {era}"
        against = worse(direct[client], seen)
        reason = ACCEPTED.get(oddity)
        if not against:
            verdict = "ok"
        elif reason:
            verdict = f"skip: {reason}"
        else:
            verdict = f"FAIL: {'; '.join(against)[:400]}"
        cells.append((cell, verdict, ", ".join(step for step, got in direct[client].items() if isinstance(got, Exception))))
    return cells


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shoal", required=True)
    parser.add_argument("--only", action="append", default=[], choices=sorted(oddities.ALL))
    parser.add_argument("--transport", choices=("stdio", "http"))
    args = parser.parse_args()
    limit = asyncio.Semaphore(AT_ONCE)

    async def limited(oddity: str, transport: str) -> list[tuple[str, str, str]]:
        async with limit:
            cells = await row(args.shoal, oddity, transport)
            # What a busy machine made slow passes when it is tried again.
            if any(verdict.startswith("FAIL") for _, verdict, _ in cells):
                cells = await row(args.shoal, oddity, transport)
            return cells

    rows = [
        limited(oddity, transport)
        for oddity, kind in oddities.ALL.items()
        for transport in kind.transports
        if (not args.only or oddity in args.only) and args.transport in (None, transport)
    ]
    failed = 0
    for done in asyncio.as_completed(rows):
        for cell, verdict, refused in await done:
            failed += verdict.startswith("FAIL")
            word, _, why = verdict.partition(": ")
            said = f": {why}" if why else ""
            print(f"{word} {cell}{said}" + (f" (directly it fails in: {refused})" if refused else ""), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    logging.disable()
    warnings.simplefilter("ignore")
    sys.exit(asyncio.run(main()))
