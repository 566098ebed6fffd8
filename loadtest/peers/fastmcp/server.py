"""An echo server on FastMCP, or its proxy in front of another server, in one process.

server.py [--stateless] [--proxy URL]
"""

import argparse
import asyncio
import socket

import uvicorn
from fastmcp import FastMCP
from fastmcp.server import create_proxy


def echo_server() -> FastMCP:
    server = FastMCP("fastmcp")

    # Without an output schema the answer is the text alone, as with the other servers.
    @server.tool(output_schema=None, annotations={"readOnlyHint": True})
    async def echo(text: str) -> str:
        """Gives the text back."""
        return text

    return server


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--stateless", action="store_true", help="no sessions, answers in JSON")
    parser.add_argument("--proxy", metavar="URL", help="the server to stand in front of")
    arguments = parser.parse_args()
    server = create_proxy(arguments.proxy) if arguments.proxy else echo_server()
    app = server.http_app(
        path="/mcp", stateless_http=arguments.stateless, json_response=arguments.stateless
    )
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(app, log_level="warning", access_log=False)
    await uvicorn.Server(config).serve(sockets=[listener])


asyncio.run(main())
