"""An echo server on the Python SDK, in one process: sessions for 2025-11-25, none for 2026-07-28."""

import asyncio
import socket

import uvicorn
from mcp.server import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("python-sdk", log_level="WARNING")


# Without structured output the answer is the text alone, as with the other servers.
@server.tool(structured_output=False, annotations=ToolAnnotations(read_only_hint=True))
async def echo(text: str) -> str:
    """Gives the text back."""
    return text


async def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="warning", access_log=False)
    await uvicorn.Server(config).serve(sockets=[listener])


asyncio.run(main())
