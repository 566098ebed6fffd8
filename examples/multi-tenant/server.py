"""The tools of a team. Both teams run this program, each with its own name."""

import sys

from mcp.server import MCPServer
from mcp_types import ToolAnnotations

team = sys.argv[1]
server = MCPServer(team, log_level="WARNING")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def search(words: str) -> str:
    """Searches the team's documents."""
    return f"{team}: nothing about {words}"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def report(month: str) -> str:
    """Writes a report, which costs money."""
    return f"{team}: report for {month}"


if __name__ == "__main__":
    server.run()
