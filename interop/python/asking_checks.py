"""Checks of the asking servers of every SDK behind Shoal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import anyio
import mcp_types as types
from mcp import MCPError

from common import Checks, call, followed, listed_tools, text_of
from harness import Failure, Skip, expect, expect_equal
from peer import SAMPLED

COUNTER = "asking://counter"
LONG = 600
"""Steps that take longer than a check may."""
AT_ONCE_SECONDS = 20
OUTCOME_UNKNOWN = 50002


class AskingChecks(Checks):
    """Checks of a server that supports both eras and both ways to ask."""

    async def call(self) -> None:
        expect_equal(await call(self.client, "echo", text="hello"), "hello", "text")

    async def progress(self) -> None:
        seen: list[tuple[float, float | None]] = []

        async def on_progress(progress: float, total: float | None, _message: str | None) -> None:
            seen.append((progress, total))

        job = {"steps": 3, "label": "progress"}
        result = await self.client.call_tool("work", job, progress_callback=on_progress)
        expect_equal(text_of(result), "worked 3 steps", "text")
        expect_equal(seen, [(1, 3), (2, 3), (3, 3)], "progress")

    async def cancel(self) -> None:
        label = f"cancel {uuid4()}"
        with anyio.CancelScope() as scope:
            async with self._amid(label, scope.cancel):
                await self.client.call_tool("work", {"steps": LONG, "label": label})
        expect(scope.cancelled_caught, "the work ended before it was cancelled")
        await self.known.left(f"cancelled {label}")
        expect_equal(await call(self.client, "echo", text="still here"), "still here", "text")

    async def elicitation_by_request(self) -> None:
        await self._greeting("greet")

    async def elicitation_by_result(self) -> None:
        await self._has("greet_required")
        await self._greeting("greet_required")

    async def elicitation_as_the_era_has_it(self) -> None:
        await self._has("greet_resolved")
        self.peer.form_answer = types.ElicitResult(action="accept", content={"name": "Ada"})
        expect_equal(await call(self.client, "greet_resolved"), "hello Ada", "text")

    async def sampling(self) -> None:
        text = await call(self.client, "summarize", text="a long story")
        expect_equal(text, f"summary: {SAMPLED}", "text")

    async def roots(self) -> None:
        expect_equal((await call(self.client, "list_roots")).split("\n"), self.peer.roots, "roots")

    async def subscription(self) -> None:
        async with followed(self, COUNTER) as updated:
            changes = await call(self.client, "change")
            await updated()
        contents = (await self.client.read_resource(COUNTER)).contents
        expect(changes.isdecimal() and contents[0].text.isdecimal(), f"odd text {contents[0].text!r}")

    async def crash(self) -> None:
        label = f"crash {uuid4()}"
        async with self._amid(label, lambda: self.known.kill(f"started {label}")):
            try:
                with anyio.fail_after(AT_ONCE_SECONDS):
                    result = await self.client.call_tool("work", {"steps": LONG, "label": label})
            except MCPError as error:
                expect_equal(error.code, OUTCOME_UNKNOWN, f"code of {error.message!r}")
            except TimeoutError:
                raise Failure(f"no error within {AT_ONCE_SECONDS} s") from None
            else:
                raise Failure(f"the call ended with {text_of(result)!r}")
        expect_equal(self.known.times(f"started {label}"), 1, "starts")
        expect_equal(await call(self.client, "echo", text="back"), "back", "text")

    async def crash_in_what_is_safe_to_repeat(self) -> None:
        label = f"crash {uuid4()}"
        seen: list[float] = []

        async def on_progress(progress: float, *_: object) -> None:
            seen.append(progress)

        job = {"steps": 40, "label": label}
        async with self._amid(label, lambda: self.known.kill(f"started {label}")):
            result = await self.client.call_tool("work_safely", job, progress_callback=on_progress)
        expect_equal(text_of(result), "worked 40 steps", "text")
        expect_equal(self.known.times(f"started {label}"), 2, "starts")
        expect_equal(seen, sorted(set(seen)), "progress, which must increase")
        expect_equal(await call(self.client, "echo", text="back"), "back", "text")

    @asynccontextmanager
    async def _amid(self, label: str, then) -> AsyncIterator[None]:
        """Runs in the middle of the server's work."""

        async def wait() -> None:
            await self._working(label)
            then()

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            yield
            group.cancel_scope.cancel()

    async def _working(self, label: str) -> None:
        await self.known.left(f"started {label}")
        # Time to report progress.
        await anyio.sleep(0.2)

    async def _has(self, tool: str) -> None:
        if tool not in {tool.name for tool in await listed_tools(self.client)}:
            raise Skip("the SDK has no such thing")

    async def _greeting(self, tool: str) -> None:
        for _ in range(2):
            before = len(self.peer.forms)
            self.peer.form_answer = types.ElicitResult(action="accept", content={"name": "Ada"})
            expect_equal(await call(self.client, tool), "hello Ada", "text")
            self.peer.form_answer = types.ElicitResult(action="decline")
            expect_equal(await call(self.client, tool), "nobody: decline", "text")
            expect_equal(len(self.peer.forms), before + 2, "questions")
