"""Checks against `@modelcontextprotocol/server-everything` behind Shoal."""

from __future__ import annotations

import anyio
import mcp_types as types

from common import Checks, call, followed, listed_resources, listed_tools, pages, text_of
from harness import Skip, expect, expect_equal
from peer import SAMPLED

LONG = "trigger-long-running-operation"
DOCUMENT = "demo://resource/dynamic/text/7"


class EverythingChecks(Checks):
    """Checks of the reference server."""

    async def list_tools(self) -> None:
        names = {tool.name for tool in await listed_tools(self.client)}
        # The server offers the last three only if the client declares the capabilities.
        wanted = {
            "echo",
            "get-sum",
            "get-structured-content",
            "trigger-long-running-operation",
            "trigger-elicitation-request",
            "trigger-url-elicitation",
            "trigger-sampling-request",
        }
        expect(wanted <= names, f"missing tools: {sorted(wanted - names)}")

    async def call(self) -> None:
        expect_equal(await call(self.client, "echo", message="hello"), "Echo: hello", "text")

    async def structured_content(self) -> None:
        result = await self.client.call_tool("get-structured-content", {"location": "Chicago"})
        expect_equal(result.structured_content["temperature"], 36, "temperature")

    async def progress(self) -> None:
        seen: list[float] = []

        async def on_progress(progress: float, _total: float | None, _message: str | None) -> None:
            seen.append(progress)

        await self.client.call_tool(
            LONG,
            {"duration": 0.4, "steps": 4},
            progress_callback=on_progress,
        )
        expect_equal(seen, [1, 2, 3, 4], "progress")

    async def cancel(self) -> None:
        seen: list[float] = []
        with anyio.CancelScope() as scope:

            async def on_progress(progress: float, *_: object) -> None:
                seen.append(progress)
                scope.cancel()

            await self.client.call_tool(LONG, {"duration": 6, "steps": 12}, progress_callback=on_progress)
        expect(scope.cancelled_caught, "the operation ended before it was cancelled")
        expect_equal(await call(self.client, "echo", message="still here"), "Echo: still here", "text")
        expect_equal(seen, [1], "progress of what was cancelled")

    async def elicitation_form_accept(self) -> None:
        self.peer.form_answer = types.ElicitResult(action="accept", content={"name": "Ada"})
        text = await call(self.client, "trigger-elicitation-request")
        expect("- Name: Ada" in text, f"odd text {text!r}")

    async def elicitation_form_decline(self) -> None:
        self.peer.form_answer = types.ElicitResult(action="decline")
        text = await call(self.client, "trigger-elicitation-request")
        expect("declined" in text, f"odd text {text!r}")

    async def elicitation_url(self) -> None:
        self.peer.url_answer = types.ElicitResult(action="accept")
        before = len(self.peer.urls)
        await call(self.client, "trigger-url-elicitation", url="https://example.com/sign-in")
        expect_equal(len(self.peer.urls), before + 1, "URL elicitations")
        expect_equal(self.peer.urls[-1].url, "https://example.com/sign-in", "URL")

    async def sampling(self) -> None:
        text = await call(
            self.client, "trigger-sampling-request", prompt="a long story", maxTokens=50
        )
        expect(SAMPLED in text, f"odd text {text!r}")
        expect("a long story" in str(self.peer.samples[-1]), "the prompt lacks the text")

    async def roots(self) -> None:
        # The server keeps the roots of one client, so Shoal does not tell shared processes any roots.
        names = {tool.name for tool in await listed_tools(self.client)}
        if "get-roots-list" not in names and not self.own_process:
            raise Skip("the server's processes are shared")
        text = await call(self.client, "get-roots-list")
        expect(self.peer.roots[0] in text, f"odd text {text!r}")

    async def list_resources(self) -> None:
        expect(await listed_resources(self.client), "no resources")

    async def read_resource(self) -> None:
        listed = await listed_resources(self.client)
        contents = (await self.client.read_resource(listed[0].uri)).contents
        expect_equal(contents[0].uri, listed[0].uri, "URI")

    async def read_template(self) -> None:
        templates = [
            template.uri_template
            async for page in pages(self.client.list_resource_templates)
            for template in page.resource_templates
        ]
        wanted = "demo://resource/dynamic/text/{resourceId}"
        expect(wanted in templates, f"templates: {templates}")
        contents = (await self.client.read_resource(DOCUMENT)).contents
        expect("7" in contents[0].text, f"odd text {contents[0].text!r}")

    async def subscription(self) -> None:
        # The server sends an update at once and then every five seconds, until the next call.
        try:
            async with followed(self, DOCUMENT) as updated:
                await call(self.client, "toggle-subscriber-updates")
                await updated()
        finally:
            await call(self.client, "toggle-subscriber-updates")

    async def list_prompts(self) -> None:
        names = {
            prompt.name
            async for page in pages(self.client.list_prompts)
            for prompt in page.prompts
        }
        wanted = {"simple-prompt", "args-prompt", "completable-prompt"}
        expect(wanted <= names, f"prompts: {sorted(names)}")

    async def get_prompt(self) -> None:
        prompt = await self.client.get_prompt("args-prompt", {"city": "Paris"})
        text = prompt.messages[0].content.text
        expect("Paris" in text, f"odd text {text!r}")

    async def completion(self) -> None:
        result = await self.client.complete(
            types.PromptReference(type="ref/prompt", name="completable-prompt"),
            {"name": "department", "value": "E"},
        )
        expect_equal(result.completion.values, ["Engineering"], "values")

    async def tool_error(self) -> None:
        result = await self.client.call_tool("get-sum", {"a": "two", "b": 40})
        expect(result.is_error, "isError is not set")
        expect(text_of(result), "no text")

    async def crash(self) -> None:
        # The tool may be repeated, so it runs again and succeeds.
        seen: list[float] = []

        async def on_progress(progress: float, *_: object) -> None:
            if not seen:
                self.known.kill()
            seen.append(progress)

        result = await self.client.call_tool(LONG, {"duration": 1, "steps": 4}, progress_callback=on_progress)
        expect(not result.is_error and "completed" in text_of(result), f"odd text {text_of(result)!r}")
        expect_equal(await call(self.client, "echo", message="back"), "Echo: back", "text")
