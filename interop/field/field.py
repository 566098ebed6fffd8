"""Runs the same script against servers of the registries directly and through Shoal, and compares what a client gets.

`python field.py --shoal PATH --tools DIRECTORY [--only NAME]… [--write PAGE]`. The client is that of the Python SDK. Directly it speaks to the
server over stdio; through Shoal over Streamable HTTP, once as a client of 2025-11-25 and once as one of 2026-07-28. The exit code is 1 if
anything differs for which known.py has no reason.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import urllib.request
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp import Client, StdioServerParameters

from install import Installed, Registries
from known import KNOWN
from servers import SERVERS, Server

STEP_SECONDS = 60
START_SECONDS = 180
READ_RESOURCES = 3
GOT_PROMPTS = 3
MODES = {"2025-11-25": "legacy", "2026-07-28": "auto"}

Seen = dict[str, Any]
"""What was got in each step, as JSON; an error as {"error": its code}."""


class Answers:
    """Answers servers' questions, always the same."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    async def elicit(self, _context: Any, params: Any) -> types.ElicitResult:
        """Accepts a form without filling it in, because all fields are optional."""
        return types.ElicitResult(action="accept" if hasattr(params, "requested_schema") else "decline", content={})

    async def sample(self, _context: Any, _params: Any) -> types.CreateMessageResult:
        """Says one sentence."""
        text = types.TextContent(type="text", text="A sampled sentence.")
        return types.CreateMessageResult(role="assistant", content=text, model="scripted")

    async def roots(self, _context: Any) -> types.ListRootsResult:
        """Has one root: the directory of the run."""
        return types.ListRootsResult(roots=[types.Root(uri=pathlib.Path(self.directory).as_uri(), name="run")])


async def script(client: Client, server: Server, place: Callable[[Any], Any]) -> Seen:
    """Records a client's view."""
    seen: Seen = {}

    async def step(name: str, ask: Callable[[], Awaitable[Any]]) -> Any:
        try:
            async with asyncio.timeout(STEP_SECONDS):
                got = await ask()
        except Exception as error:
            seen[name] = {"error": getattr(error, "code", None) or type(error).__name__}
            return None
        seen[name] = got.model_dump(mode="json", by_alias=True, exclude_none=True)
        return got

    tools = await step("tools/list", client.list_tools)
    resources = await step("resources/list", client.list_resources)
    await step("resources/templates/list", client.list_resource_templates)
    prompts = await step("prompts/list", client.list_prompts)
    for resource in sorted(resources.resources if resources else [], key=lambda each: str(each.uri))[:READ_RESOURCES]:
        await step(f"read {resource.uri}", lambda uri=str(resource.uri): client.read_resource(uri))
    simple = [each for each in (prompts.prompts if prompts else []) if not any(argument.required for argument in each.arguments or [])]
    for prompt in sorted(simple, key=lambda each: each.name)[:GOT_PROMPTS]:
        await step(f"get {prompt.name}", lambda name=prompt.name: client.get_prompt(name))
    for at, (tool, arguments) in enumerate(server.calls):
        await step(f"call {at + 1} {tool}", lambda tool=tool, arguments=arguments: client.call_tool(tool, place(arguments)))
    # List again after the calls, because some servers change their tools for a client.
    if tools:
        await step("tools/list, again", client.list_tools)
    return seen


def placed(value: Any, places: dict[str, str]) -> Any:
    """Replaces paths."""
    text = json.dumps(value)
    for name, path in places.items():
        text = text.replace("{" + name + "}", json.dumps(path)[1:-1])
    return json.loads(text)


@contextlib.asynccontextmanager
async def process(*words: str, cwd: str, log: Any = asyncio.subprocess.DEVNULL) -> AsyncIterator[asyncio.subprocess.Process]:
    """Runs a program, and ends it with its children."""
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    running = await asyncio.create_subprocess_exec(*words, stdin=nothing, stdout=pipe, stderr=log, cwd=cwd, start_new_session=True)
    try:
        yield running
    finally:
        with contextlib.suppress(ProcessLookupError):
            running.terminate()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(20):
                await running.communicate()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)


async def served(running: asyncio.subprocess.Process) -> str:
    """Shoal's URL, once its server is ready."""
    urls: dict[str, str] = {}
    async with asyncio.timeout(START_SECONDS):
        while len(urls) < 2 and (line := (await running.stdout.readline()).decode()):
            if found := re.match(r"shoal: (serving MCP|admin) on (http\S+)", line):
                urls[found[1]] = found[2]
        while len(urls) == 2 and running.returncode is None:
            if await asyncio.to_thread(is_ready, urls["admin"]):
                return urls["serving MCP"]
            await asyncio.sleep(0.2)
    raise RuntimeError("Shoal ends before it is ready")


def is_ready(admin: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"{admin}/readyz", timeout=5) as answer:
        return answer.status == 200
    return False


async def seen_by(target: Any, mode: str, server: Server, places: dict[str, str]) -> Seen:
    """Connects and runs the script."""
    answers = Answers(places["dir"])
    try:
        async with asyncio.timeout(START_SECONDS + 20 * STEP_SECONDS):
            async with Client(
                target,
                mode=mode,
                read_timeout_seconds=STEP_SECONDS,
                elicitation_callback=answers.elicit,
                sampling_callback=answers.sample,
                list_roots_callback=answers.roots,
            ) as client:
                await asyncio.sleep(1)
                return {"connect": True, **await script(client, server, lambda value: placed(value, places))}
    except Exception as error:
        return {"connect": {"error": f"{type(error).__name__}: {error}"}}


async def run(server: Server, installed: Installed, shoal: str | None, mode: str) -> Seen:
    """One run in its own directory; `shoal` None means directly."""
    with tempfile.TemporaryDirectory(prefix="field.") as directory:
        places = {"dir": directory, "here": str(pathlib.Path(__file__).parent), "chromium": shutil.which("chromium") or ""}
        for command in server.files:
            preparing = await asyncio.create_subprocess_shell(command, cwd=directory)
            assert await preparing.wait() == 0, command
        words = [*installed.program, *placed(list(server.command[1:] if installed.replaces else server.command), places)]
        if server.env:
            words = ["env", *placed(list(server.env), places), *words]
        if shoal is None:
            quiet = ["-c", 'exec "$0" "$@" 2>/dev/null', *words]
            target = StdioServerParameters(command="sh", args=quiet, cwd=directory, env=dict(os.environ))
            seen = await seen_by(target, mode, server, places)
        else:
            with tempfile.TemporaryFile() as log:
                serve = [shoal, "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--", *words]
                async with process(*serve, cwd=directory, log=log) as running:
                    try:
                        seen = await seen_by(await served(running), mode, server, places)
                    except Exception as error:
                        seen = {"connect": {"error": f"{type(error).__name__}: {error}"}}
        return steady(seen, server, directory)


def steady(value: Any, server: Server, directory: str) -> Any:
    """Replaces values that differ between runs."""
    if isinstance(value, dict):
        return {steady(key, server, directory): steady(each, server, directory) for key, each in sorted(value.items())}
    if isinstance(value, list):
        return [steady(each, server, directory) for each in value]
    if isinstance(value, float):
        return "~" if steady(str(value), server, directory) == "~" else value
    if not isinstance(value, str):
        return value
    value = value.replace(directory, "{dir}")
    for pattern in server.volatile:
        value = re.sub(pattern, "~", value)
    return value


def differences(direct: Any, through: Any, at: str = "") -> list[str]:
    """The paths at which two values differ; items of lists are matched by name, URI or position."""
    if isinstance(direct, dict) and isinstance(through, dict):
        found = []
        for key in sorted({*direct, *through}):
            path = f"{at}.{key}" if at else key
            if key not in through:
                found.append(f"{path}: lost")
            elif key not in direct:
                found.append(f"{path}: new")
            else:
                found += differences(direct[key], through[key], path)
        return found
    if isinstance(direct, list) and isinstance(through, list):
        return differences(by_name(direct), by_name(through), at)
    if direct != through:
        return [f"{at}: {shown(through)} instead of {shown(direct)}"]
    return []


def by_name(values: list[Any]) -> dict[str, Any]:
    """Items of a list by name."""
    names = [str(each.get("name") or each.get("uri") or at) if isinstance(each, dict) else str(at) for at, each in enumerate(values)]
    if len(set(names)) < len(names):
        names = [str(at) for at in range(len(values))]
    return dict(zip(names, values, strict=True))


def shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 120 else f"{text[:117]}…"


BETTER = "some steps work only through Shoal"


def failed(got: Any) -> bool:
    return got is None or (isinstance(got, dict) and set(got) == {"error"})


def compared(name: str, direct: Seen, through: Seen) -> tuple[list[str], list[str]]:
    """Differences without a reason, and the reasons of the others."""
    without, reasons = [], []
    better = [step for step, got in direct.items() if failed(got) and not failed(through.get(step))]
    if better:
        reasons.append(BETTER)
    # Without a connection there is nothing to compare.
    same = [] if failed(direct["connect"]) else [step for step in {*direct, *through} if step not in better]
    for difference in differences(*({step: seen[step] for step in same if step in seen} for seen in (direct, through))):
        reason = next((reason for where, pattern, reason in KNOWN if where in ("*", name) and re.search(pattern, difference)), None)
        if reason is None:
            without.append(difference)
        elif reason and reason not in reasons:
            reasons.append(reason)
    return without, reasons


async def row(name: str, registries: Registries, shoal: str) -> tuple[str, int]:
    """A row of the table, and the number of its differences without a reason."""
    server = SERVERS[name]
    if server.wanted and not shutil.which(server.wanted):
        return f"| {name} (`{server.package}`) | | not run | it needs {server.wanted} |", 0
    try:
        installed = await registries.install(server)
    except Exception as error:
        return f"| {name} (`{server.package}`) | | not run | {str(error).strip()[-150:]} |", 0
    direct = await run(server, installed, None, "legacy")
    reasons, counts, unexplained = [], [], 0
    for era, mode in MODES.items():
        through = await run(server, installed, shoal, mode)
        without, known = compared(name, direct, through)
        for difference in without[:20]:
            print(f"{name}, {era}: {difference}", file=sys.stderr, flush=True)
        unexplained += len(without)
        reasons += [reason for reason in known if reason not in reasons]
        if without:
            counts.append(f"{len(without)} differences in {era}")
    steps = [step for step in direct if step != "connect"]
    refused = sum("error" in direct[step] for step in steps)
    asked = f"{len(steps)}, {refused} fail" if refused else f"{len(steps)}"
    if failed(direct["connect"]):
        asked = "connection only through Shoal" if reasons else "no connection, even through Shoal"
        counts, reasons = [], []
    return f"| {name} (`{server.package}`) | {installed.version} | {asked} | {'; '.join(counts + reasons)} |", unexplained


HEAD = (
    "| server | version | steps | differences |",
    "|---|---|---|---|",
)
BEGIN, END = "<!-- servers: begin -->", "<!-- servers: end -->"


def write(page: pathlib.Path, rows: list[str]) -> None:
    """Writes the table between its marks."""
    text = page.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    page.write_text("\n".join([before + BEGIN, *HEAD, *rows, END + after]))


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shoal", required=True)
    parser.add_argument("--tools", type=pathlib.Path, required=True, help="where servers are installed")
    parser.add_argument("--only", action="append", default=[], choices=sorted(SERVERS))
    parser.add_argument("--write", type=pathlib.Path, help="a page to put the table into")
    args = parser.parse_args()
    registries = Registries(args.tools)
    rows, failed = [], 0
    print("\n".join(HEAD), flush=True)
    for name in SERVERS:
        if args.only and name not in args.only:
            continue
        text, without = await row(name, registries, str(pathlib.Path(args.shoal).resolve()))
        print(text, flush=True)
        rows.append(text)
        failed += bool(without)
    if args.write and not args.only:
        write(args.write, rows)
    print(f"{len(rows)} servers, {failed} with differences that have no reason")
    return 1 if failed else 0


if __name__ == "__main__":
    logging.disable()
    warnings.simplefilter("ignore")
    sys.exit(asyncio.run(main()))
