"""The clients of the official Python and TypeScript SDKs, and the steps that each takes."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import pathlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Self

import mcp_types as types
from mcp import Client, StdioServerParameters

PROGRAM = pathlib.Path(__file__).parents[1] / "typescript" / "odd.js"
STEP_SECONDS = 8
WITHDRAWN_SECONDS = 3
WHOLE_SECONDS = 5 * STEP_SECONDS
MODES = {"legacy": "legacy", "modern": "auto"}
LONGEST_LINE = 1 << 26

Seen = dict[str, Any]
"""What was got in each step; an exception where that failed."""


async def steps(client: Client, seen: Seen) -> None:
    """Records a client's view."""

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
        return result.model_dump(mode="json", by_alias=True, include={"content", "structured_content", "is_error"}, exclude_none=True)

    async def read() -> Any:
        result = await client.read_resource("odd://one")
        return result.model_dump(mode="json", by_alias=True, include={"contents"}, exclude_none=True)

    async def get() -> Any:
        result = await client.get_prompt("greet")
        return result.model_dump(mode="json", by_alias=True, include={"messages"}, exclude_none=True)

    for step in (tools, resources, templates, prompts, read, get, call):
        seen[step.__name__] = await tried(step)


async def tried(step: Callable[[], Awaitable[Any]]) -> Any:
    try:
        async with asyncio.timeout(STEP_SECONDS):
            return await step()
    except Exception as error:
        return error


@dataclass(frozen=True)
class User:
    """The user that answers a server's questions, if there is one."""

    answers: bool = False
    waits: bool = False
    """Whether questions are taken back: then nobody answers them before `WITHDRAWN_SECONDS`."""


class Answers:
    """The answers of a client, and whether a question was withdrawn."""

    def __init__(self, user: User) -> None:
        self._user = user
        self.withdrawn = False

    async def _waited(self) -> None:
        if not self._user.waits:
            return
        try:
            await asyncio.sleep(WITHDRAWN_SECONDS)
        except asyncio.CancelledError:
            self.withdrawn = True
            raise

    async def elicit(self, _context: Any, _params: Any) -> types.ElicitResult:
        await self._waited()
        return types.ElicitResult(action="accept", content={"colour": "blue"})

    async def sample(self, _context: Any, _params: Any) -> types.CreateMessageResult:
        await self._waited()
        return types.CreateMessageResult(role="assistant", model="none", content=types.TextContent(type="text", text="Hi"))

    async def roots(self, _context: Any) -> types.ListRootsResult:
        await self._waited()
        return types.ListRootsResult(roots=[])

    def callbacks(self) -> dict[str, Any]:
        if not self._user.answers:
            return {}
        return {"elicitation_callback": self.elicit, "sampling_callback": self.sample, "list_roots_callback": self.roots}


async def python(words: list[str], era: str, user: User) -> Seen:
    """A connection of the Python SDK and all its steps."""
    target = words[0] if len(words) == 1 else StdioServerParameters(command=words[0], args=words[1:])
    seen: Seen = {}
    answers = Answers(user)
    try:
        async with asyncio.timeout(WHOLE_SECONDS):
            async with Client(target, mode=MODES[era], **answers.callbacks()) as client:
                seen["connect"] = True
                await steps(client, seen)
                # Clients of 2026-07-28 are not told of withdrawn questions.
                if user.waits and era == "legacy":
                    seen["withdrawn"] = answers.withdrawn
    except Exception as error:
        seen.setdefault("connect", cause(error))
    return seen


def cause(error: Exception) -> Exception:
    """The error inside a group."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


class TypeScript:
    """The program with the TypeScript SDK's clients. One serves all connections, because its start is slow."""

    async def __aenter__(self) -> Self:
        pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[Seen]] = {}
        self._program = await asyncio.create_subprocess_exec("node", str(PROGRAM), stdin=pipe, stdout=pipe, stderr=nothing, limit=LONGEST_LINE)
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._reader.cancel()
        with contextlib.suppress(ProcessLookupError):
            self._program.terminate()
        await self._program.wait()

    async def run(self, words: list[str], era: str, user: User) -> Seen:
        number = next(self._numbers)
        done = self._waiting[number] = asyncio.get_running_loop().create_future()
        waits = WITHDRAWN_SECONDS if user.waits else 0
        job = {"number": number, "era": era, "seconds": STEP_SECONDS, "words": words, "asks": user.answers, "waits": waits}
        self._program.stdin.write(json.dumps(job).encode() + b"\n")
        try:
            async with asyncio.timeout(2 * WHOLE_SECONDS):
                return await done
        except TimeoutError as error:
            return {"connect": error}
        finally:
            del self._waiting[number]

    async def _read(self) -> None:
        while line := await self._program.stdout.readline():
            said = json.loads(line)
            seen = {name: step["got"] if "got" in step else RuntimeError(step["error"]) for name, step in said["seen"].items()}
            if (done := self._waiting.get(said["number"])) and not done.done():
                done.set_result(seen)
        for done in self._waiting.values():
            done.set_exception(RuntimeError("the program of the TypeScript SDK has ended"))
