"""Checks against the asking servers of every SDK behind Shoal."""

from __future__ import annotations

import mcp_types as types

from common import Checks, call, listed_tools
from harness import Skip, expect_equal
from peer import SAMPLED


class AskingChecks(Checks):
    """What a client can do with a server that speaks both eras, and asks in the way of either."""

    async def echo(self) -> None:
        expect_equal(await call(self.client, "echo", text="hello"), "hello", "text")

    async def elicit_by_request(self) -> None:
        await self._greeting("greet")

    async def elicit_by_result(self) -> None:
        await self._greeting("greet_required")

    async def elicit_as_the_era_has_it(self) -> None:
        names = {tool.name for tool in await listed_tools(self.client)}
        if "greet_resolved" not in names:
            raise Skip("the SDK has no such thing")
        self.peer.form_answer = types.ElicitResult(action="accept", content={"name": "Ada"})
        expect_equal(await call(self.client, "greet_resolved"), "hello Ada", "text")

    async def sampling(self) -> None:
        text = await call(self.client, "summarize", text="a long story")
        expect_equal(text, f"summary: {SAMPLED}", "text")

    async def roots(self) -> None:
        expect_equal((await call(self.client, "list_roots")).split("\n"), self.peer.roots, "roots")

    async def _greeting(self, tool: str) -> None:
        for _ in range(2):
            before = len(self.peer.forms)
            self.peer.form_answer = types.ElicitResult(action="accept", content={"name": "Ada"})
            expect_equal(await call(self.client, tool), "hello Ada", "text")
            self.peer.form_answer = types.ElicitResult(action="decline")
            expect_equal(await call(self.client, tool), "nobody: decline", "text")
            expect_equal(len(self.peer.forms), before + 2, "questions")
