"""A server on FastMCP whose tools ask mid-call, in every way that it has."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import mcp_types as types
from fastmcp import Context, FastMCP

server = FastMCP("asking-fastmcp")


@dataclass
class Guest:
    name: str


@server.tool(output_schema=None)
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


# Each round calls it from the beginning, so it must be safe to repeat.
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


if __name__ == "__main__":
    if sys.argv[1:2] == ["--http"]:
        server.run("http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False, log_level="WARNING")
    else:
        server.run(show_banner=False, log_level="WARNING")
