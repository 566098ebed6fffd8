"""A FastMCP server with skills and an app."""

from __future__ import annotations

import pathlib

from fastmcp import FastMCP
from fastmcp.server.providers.skills import SkillsDirectoryProvider

server = FastMCP("skills and apps")
server.add_provider(SkillsDirectoryProvider(roots=pathlib.Path("skills")))
PAGE = "ui://shown/page.html"


@server.tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool(app={"resourceUri": PAGE})
def show() -> dict[str, str]:
    """Shows a page."""
    return {"said": "hello"}


@server.resource(PAGE, mime_type="text/html;profile=mcp-app")
def page() -> str:
    """The page of `show`."""
    return "<!doctype html><title>hello</title>"


if __name__ == "__main__":
    server.run(show_banner=False)
