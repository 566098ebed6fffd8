"""A server on FastMCP whose tools ask mid-call, in every way that it has, work, and change a resource."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

import anyio
import mcp_types as types
from fastmcp import Context, FastMCP

server = FastMCP("asking-fastmcp")


@dataclass
class Guest:
    name: str


@server.tool(output_schema=None, annotations=types.ToolAnnotations(read_only_hint=True))
async def echo(text: str) -> str:
    """Gives the text back."""
    return text


@server.tool(output_schema=None)
async def greet(ctx: Context) -> str:
    """Asks for a name by a request of the server."""
    answer = await ctx.elicit("Who are you?", response_type=Guest)
    return f"hello {answer.data.name}" if answer.action == "accept" else f"nobody: {answer.action}"


@server.tool(output_schema=None)
async def summarize(text: str, ctx: Context) -> str:
    """Samples from the client's model by a request of the server."""
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=text))
    answer = await ctx.session.create_message([message], max_tokens=100)
    return f"summary: {answer.content.text}"


@server.tool(output_schema=None)
async def list_roots(ctx: Context) -> str:
    """Lists the client's roots by a request of the server."""
    return "\n".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)


# Each round runs the tool from the start, so it must be safe to repeat.
@server.tool(output_schema=None, annotations=types.ToolAnnotations(idempotent_hint=True))
async def greet_required(ctx: Context) -> str | types.InputRequiredResult:
    """Asks for a name by its result."""
    answer = (ctx.input_responses or {}).get("name")
    if answer is None:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        form = types.ElicitRequestFormParams(message="Who are you?", requested_schema=schema)
        return types.InputRequiredResult(
            input_requests={"name": types.ElicitRequest(params=form)}, request_state="asked"
        )
    return f"hello {answer.content['name']}" if answer.action == "accept" else f"nobody: {answer.action}"


COUNTER = "asking://counter"
# The subscribed sessions.
followers = {}
count = 0


@server.resource(COUNTER)
def counter() -> str:
    """How often it was changed."""
    return str(count)


async def subscribe(ctx, params: types.SubscribeRequestParams) -> types.EmptyResult:
    followers[id(ctx.session)] = ctx.session
    return types.EmptyResult()


async def unsubscribe(ctx, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    followers.pop(id(ctx.session), None)
    return types.EmptyResult()


# FastMCP has no subscriptions, so the low-level server handles them.
server._mcp_server.add_request_handler("resources/subscribe", types.SubscribeRequestParams, subscribe)
server._mcp_server.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, unsubscribe)


@server.tool(output_schema=None)
async def change(ctx: Context) -> str:
    """Changes the resource, and tells those who follow it."""
    global count
    count += 1
    for follower in list(followers.values()):
        await follower.send_resource_updated(COUNTER)
    return str(count)


def record(what: str) -> None:
    """Writes to a file, because a killed process loses its memory."""
    with open(os.environ["INTEROP_RECORD"], "a", encoding="utf-8") as file:
        file.write(f"{what}\n")


@server.tool(output_schema=None)
async def work(steps: int, label: str, ctx: Context) -> str:
    """Takes a while, and says how far it is."""
    record(f"started {label}")
    try:
        for step in range(1, steps + 1):
            await ctx.report_progress(step, steps)
            await anyio.sleep(0.05)
    except anyio.get_cancelled_exc_class():
        record(f"cancelled {label}")
        raise
    return f"worked {steps} steps"


@server.tool(output_schema=None, annotations=types.ToolAnnotations(read_only_hint=True))
async def work_safely(steps: int, label: str, ctx: Context) -> str:
    """The same, and it may be called again."""
    return await work(steps, label, ctx)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--http"]:
        server.run("http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False, log_level="WARNING")
    else:
        server.run(show_banner=False, log_level="WARNING")
