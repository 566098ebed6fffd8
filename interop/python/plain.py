"""A plain server on the official Python SDK, for interop/odd/clients.py: over stdio, or with --http over Streamable HTTP and
HTTP+SSE, when it prints its port."""

from __future__ import annotations

import socket
import sys

import uvicorn
from mcp.server import MCPServer

server = MCPServer("plain", log_level="CRITICAL")


@server.tool(structured_output=False)
def echo(text: str) -> str:
    return text


@server.tool(structured_output=False)
def add(a: int, b: int) -> str:
    return str(a + b)


@server.tool(structured_output=False)
def join(tags: list[str]) -> str:
    return ",".join(tags)


@server.tool(structured_output=False)
def nothing() -> str:
    return "done"


@server.resource("plain://one")
def one() -> str:
    return "1"


@server.prompt()
def greet() -> str:
    return "hello"


if __name__ == "__main__":
    if sys.argv[1:] == ["--http"]:
        listening = socket.create_server(("127.0.0.1", 0))
        print(listening.getsockname()[1], flush=True)
        app = server.streamable_http_app()
        app.router.routes += server.sse_app().routes
        uvicorn.Server(uvicorn.Config(app, log_level="critical")).run([listening])
    else:
        server.run()
