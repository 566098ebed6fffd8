"""A server on the official Python SDK whose tools ask mid-call, in every way that the SDK has, work, and change a resource."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated

import anyio
import mcp_types as types
from mcp import MCPDeprecationWarning
from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit, Resolve
from pydantic import BaseModel

# Sampling and roots are deprecated but still supported.
warnings.simplefilter("ignore", MCPDeprecationWarning)
server = MCPServer("asking-python", log_level="WARNING")


class Guest(BaseModel):
    name: str


@server.tool(structured_output=False, annotations=types.ToolAnnotations(read_only_hint=True))
async def echo(text: str) -> str:
    """Gives the text back."""
    return text


@server.tool(structured_output=False)
async def greet(ctx: Context) -> str:
    """Asks for a name by a request of the server."""
    answer = await ctx.elicit("Who are you?", Guest)
    return f"hello {answer.data.name}" if answer.action == "accept" else f"nobody: {answer.action}"


@server.tool(structured_output=False)
async def summarize(text: str, ctx: Context) -> str:
    """Samples from the client's model by a request of the server."""
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=text))
    answer = await ctx.session.create_message([message], max_tokens=100)
    return f"summary: {answer.content.text}"


@server.tool(structured_output=False)
async def list_roots(ctx: Context) -> str:
    """Lists the client's roots by a request of the server."""
    return "\n".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)


async def the_guest() -> Elicit[Guest]:
    return Elicit("Who are you?", Guest)


@server.tool(structured_output=False)
async def greet_resolved(guest: Annotated[Guest, Resolve(the_guest)]) -> str:
    """Asks for a name in the way that its era has."""
    return f"hello {guest.name}"


# Each round runs the tool from the start, so it must be safe to repeat.
@server.tool(structured_output=False, annotations=types.ToolAnnotations(idempotent_hint=True))
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
# The subscribed sessions of earlier revisions; those of 2026-07-28 use a stream.
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


# MCPServer handles only subscriptions of 2026-07-28, so the low-level server handles those of earlier revisions.
server._lowlevel_server.add_request_handler("resources/subscribe", types.SubscribeRequestParams, subscribe)
server._lowlevel_server.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, unsubscribe)


@server.tool(structured_output=False)
async def change(ctx: Context) -> str:
    """Changes the resource, and tells those who follow it."""
    global count
    count += 1
    for follower in list(followers.values()):
        await follower.send_resource_updated(COUNTER)
    await ctx.notify_resource_updated(COUNTER)
    return str(count)


def record(what: str) -> None:
    """Writes to a file, because a killed process loses its memory."""
    with open(os.environ["INTEROP_RECORD"], "a", encoding="utf-8") as file:
        file.write(f"{what}\n")


@server.tool(structured_output=False)
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


@server.tool(structured_output=False, annotations=types.ToolAnnotations(read_only_hint=True))
async def work_safely(steps: int, label: str, ctx: Context) -> str:
    """The same, and it may be called again."""
    return await work(steps, label, ctx)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--http"]:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
    elif sys.argv[1:2] == ["--sse"]:
        server.run("sse", host="127.0.0.1", port=int(sys.argv[2]))
    else:
        server.run()
