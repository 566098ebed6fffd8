"""Checks against Shoal's demo pool."""

from __future__ import annotations

import base64

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.client.subscriptions import ResourceUpdated, Subscription, ToolsListChanged

from common import Checks, call, listed_resources, listed_tools, pages, text_of
from harness import Failure, Skip, expect, expect_equal
from peer import SAMPLED

TOOLS = {
    "echo",
    "add",
    "long_job",
    "book_table",
    "connect_account",
    "summarize",
    "list_roots",
    "increment_counter",
    "toggle_bonus_tool",
    "write_log",
    "fail",
}
COUNTER = "demo://counter"
RESOURCE_NOT_FOUND = -32002
QUIET_SECONDS = 0.3
"""How long to listen for something that must not come."""


class DemoChecks(Checks):
    """Checks of the demo pool."""

    async def list_tools(self) -> None:
        names = {tool.name for tool in await listed_tools(self.client)}
        expect(TOOLS <= names, f"missing tools: {sorted(TOOLS - names)}")

    async def echo(self) -> None:
        expect_equal(await call(self.client, "echo", text="héllo 🌊"), "héllo 🌊", "text")

    async def structured_content(self) -> None:
        result = await self.client.call_tool("add", {"a": 2, "b": 40})
        expect_equal(result.structured_content, {"sum": 42}, "structured content")

    async def progress(self) -> None:
        seen: list[tuple[float, float | None]] = []

        async def on_progress(progress: float, total: float | None, _message: str | None) -> None:
            seen.append((progress, total))

        result = await self.client.call_tool(
            "long_job", {"steps": 5, "interval_ms": 20}, progress_callback=on_progress
        )
        expect_equal(text_of(result), "done after 5 steps", "text")
        expect_equal(seen, [(step, 5) for step in range(1, 6)], "progress")

    async def sampling(self) -> None:
        text = await call(self.client, "summarize", text="a long story")
        expect_equal(text, f"summary: {SAMPLED}", "text")
        expect("a long story" in str(self.peer.samples[-1]), "the prompt lacks the text")

    async def elicit_form_accept(self) -> None:
        answer = {"guests": 4, "date": "2026-08-01"}
        self.peer.form_answer = types.ElicitResult(action="accept", content=answer)
        text = await call(self.client, "book_table", restaurant="Chez Nous")
        expect_equal(text, "booked Chez Nous for 4 on 2026-08-01", "text")
        asked = self.peer.forms[-1].requested_schema["properties"]
        expect_equal(set(asked), {"guests", "date"}, "the form's fields")

    async def elicit_form_decline(self) -> None:
        self.peer.form_answer = types.ElicitResult(action="decline")
        text = await call(self.client, "book_table", restaurant="Chez Nous")
        expect_equal(text, "not booked: declined", "text")

    async def elicit_form_cancel(self) -> None:
        self.peer.form_answer = types.ElicitResult(action="cancel")
        text = await call(self.client, "book_table", restaurant="Chez Nous")
        expect_equal(text, "not booked: cancelled", "text")

    async def elicit_url(self) -> None:
        self.peer.url_answer = types.ElicitResult(action="accept")
        before = len(self.peer.urls)
        await call(self.client, "connect_account", service="calendar")
        expect_equal(len(self.peer.urls), before + 1, "URL elicitations")
        expect("calendar" in self.peer.urls[-1].url, f"odd URL {self.peer.urls[-1].url}")

    async def roots(self) -> None:
        text = await call(self.client, "list_roots")
        expect_equal(text.split("\n"), self.peer.roots, "roots")

    async def list_resources(self) -> None:
        uris = {resource.uri for resource in await listed_resources(self.client)}
        wanted = {"demo://readme", COUNTER, "demo://logo"}
        expect(wanted <= uris, f"missing resources: {sorted(wanted - uris)}")

    async def read_resource(self) -> None:
        contents = (await self.client.read_resource("demo://readme")).contents
        expect(isinstance(contents[0], types.TextResourceContents), "not a text")
        expect("demo" in contents[0].text, f"odd text {contents[0].text!r}")

    async def read_blob(self) -> None:
        contents = (await self.client.read_resource("demo://logo")).contents
        expect(isinstance(contents[0], types.BlobResourceContents), "not a blob")
        expect_equal(contents[0].mime_type, "image/png", "type")
        expect(base64.b64decode(contents[0].blob).startswith(b"\x89PNG"), "not a PNG")

    async def read_template(self) -> None:
        templates = [
            template.uri_template
            async for page in pages(self.client.list_resource_templates)
            for template in page.resource_templates
        ]
        expect("demo://greeting/{name}" in templates, f"templates: {templates}")
        contents = (await self.client.read_resource("demo://greeting/Ada")).contents
        expect("Ada" in contents[0].text, f"odd text {contents[0].text!r}")

    async def unknown_resource(self) -> None:
        code = types.INVALID_PARAMS if self.modern else RESOURCE_NOT_FOUND
        try:
            await self.client.read_resource("demo://nowhere")
        except MCPError as error:
            expect_equal(error.code, code, "error code")
        else:
            raise Failure("reading it succeeded")

    async def subscription(self) -> None:
        before = await self._counter()
        if self.modern:
            async with self.client.listen(resource_subscriptions=[COUNTER]) as events:
                await call(self.client, "increment_counter")
                expect_equal(await _next(events), ResourceUpdated(uri=COUNTER), "event")
        else:
            await self.client.subscribe_resource(COUNTER)
            self.peer.updated.clear()
            await call(self.client, "increment_counter")
            await self.peer.wait_for("the update", lambda: COUNTER in self.peer.updated)
            await self.client.unsubscribe_resource(COUNTER)
        expect_equal(await self._counter(), before + 1, "counter")

    async def unsubscribed(self) -> None:
        self.peer.updated.clear()
        await call(self.client, "increment_counter")
        await anyio.sleep(QUIET_SECONDS)
        expect_equal(self.peer.updated, [], "updates after unsubscribing")

    async def tools_list_changed(self) -> None:
        before = {tool.name for tool in await listed_tools(self.client)}
        try:
            if self.modern:
                async with self.client.listen(tools_list_changed=True) as events:
                    await call(self.client, "toggle_bonus_tool")
                    expect_equal(await _next(events), ToolsListChanged(), "event")
            else:
                seen = self.peer.tool_list_changes
                await call(self.client, "toggle_bonus_tool")
                await self.peer.wait_for(
                    "the change", lambda: self.peer.tool_list_changes > seen
                )
            after = {tool.name for tool in await listed_tools(self.client)}
            expect_equal(len(before ^ after), 1, "tools that came or went")
        finally:
            await call(self.client, "toggle_bonus_tool")

    async def list_prompts(self) -> None:
        names = {
            prompt.name
            async for page in pages(self.client.list_prompts)
            for prompt in page.prompts
        }
        expect({"greet", "code_review"} <= names, f"prompts: {sorted(names)}")

    async def get_prompt(self) -> None:
        arguments = {"name": "Ada", "language": "French"}
        prompt = await self.client.get_prompt("greet", arguments)
        text = prompt.messages[0].content.text
        expect("Ada" in text and "French" in text, f"odd text {text!r}")

    async def completion(self) -> None:
        result = await self.client.complete(
            types.PromptReference(type="ref/prompt", name="greet"),
            {"name": "language", "value": "G"},
        )
        expect("German" in result.completion.values, f"values: {result.completion.values}")
        expect("French" not in result.completion.values, "the prefix was ignored")

    async def logging(self) -> None:
        if not self.modern:
            await self.client.set_logging_level("info")
        self.peer.logs.clear()
        await call(self.client, "write_log", level="debug", message="too quiet")
        await call(self.client, "write_log", level="warning", message="loud enough")
        await self.peer.wait_for("the message", lambda: self.peer.logs)
        got = [(log.level, log.data) for log in self.peer.logs]
        expect_equal(got, [("warning", "loud enough")], "messages")

    async def cancel(self) -> None:
        with anyio.move_on_after(0.3) as scope:
            await self.client.call_tool("long_job", {"steps": 1000, "interval_ms": 100})
        expect(scope.cancelled_caught, "the job ended before it was cancelled")
        expect_equal(await call(self.client, "echo", text="still here"), "still here", "text")

    async def tool_error(self) -> None:
        result = await self.client.call_tool("fail", {"message": "it broke"})
        expect(result.is_error, "isError is not set")
        expect("it broke" in text_of(result), f"odd text {text_of(result)!r}")

    async def bad_arguments(self) -> None:
        result = await self.client.call_tool("add", {"a": "two", "b": 40})
        expect(result.is_error, "isError is not set")

    async def unknown_tool(self) -> None:
        try:
            await self.client.call_tool("no_such_tool", {})
        except MCPError as error:
            expect_equal(error.code, types.INVALID_PARAMS, "error code")
        else:
            raise Failure("the call succeeded")

    async def concurrent_calls(self) -> None:
        answers: dict[int, str] = {}

        async def one(number: int) -> None:
            answers[number] = await call(self.client, "echo", text=f"call {number}")

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(one, number)
        expect_equal(answers, {n: f"call {n}" for n in range(20)}, "answers")

    async def ping(self) -> None:
        if self.modern:
            raise Skip("2026-07-28 has no ping")
        await self.client.send_ping()

    async def _counter(self) -> int:
        contents = (await self.client.read_resource(COUNTER)).contents
        return int("".join(c for c in contents[0].text if c.isdigit() or c == "-"))


async def _next(events: Subscription) -> object:
    with anyio.fail_after(10):
        return await anext(aiter(events))
