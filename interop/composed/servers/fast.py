"""A server on FastMCP that writes each run of its tools in a ledger: `python fast.py PORT`."""

from __future__ import annotations

import sys

import mcp_types as types
from fastmcp import FastMCP

import ledger

server = FastMCP("ledger-fastmcp")


@server.tool(output_schema=None, annotations=types.ToolAnnotations(read_only_hint=True))
def look(key: int, gated: bool = False) -> str:
    """Is safe to repeat."""
    return ledger.run("looked", key, gated)


@server.tool(output_schema=None)
def book(key: int, gated: bool = False) -> str:
    """Must not run twice."""
    return ledger.run("booked", key, gated)


if __name__ == "__main__":
    server.run("http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="WARNING")
