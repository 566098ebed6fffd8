"""A plain server on FastMCP over Streamable HTTP and HTTP+SSE, for interop/odd/clients.py. Prints its port."""

from __future__ import annotations

import socket

import uvicorn
from fastmcp import FastMCP

server = FastMCP("plain")


@server.tool(output_schema=None)
def echo(text: str) -> str:
    return text


@server.tool(output_schema=None)
def add(a: int, b: int) -> str:
    return str(a + b)


@server.tool(output_schema=None)
def join(tags: list[str]) -> str:
    return ",".join(tags)


@server.tool(output_schema=None)
def nothing() -> str:
    return "done"


@server.resource("plain://one")
def one() -> str:
    return "1"


@server.prompt()
def greet() -> str:
    return "hello"


if __name__ == "__main__":
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    app = server.http_app(path="/mcp")
    app.router.routes += server.http_app(path="/sse", transport="sse").routes
    uvicorn.Server(uvicorn.Config(app, log_level="critical")).run([listening])
