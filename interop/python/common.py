"""Shared by the checks of every server."""

from __future__ import annotations

import argparse
import inspect
import pathlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from mcp import Client
from mcp.client.subscriptions import ResourceUpdated
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from harness import Check, Failure, expect, expect_equal
from known import Known
from peer import ARRIVAL_SECONDS, Peer

LEGACY_VERSION = "2025-11-25"
MODERN_VERSION = "2026-07-28"
MAX_PAGES = 50


class Checks:
    """A connected client and its checks: the public methods, in order."""

    def __init__(self, client: Client, peer: Peer, args: argparse.Namespace) -> None:
        self.client = client
        self.peer = peer
        self.modern: bool = args.era == "modern"
        self.directory: pathlib.Path | None = args.dir
        self.own_process: bool = args.own_process
        self.known = Known(args.known)

    def all(self) -> list[tuple[str, Check]]:
        """The checks and their names, in the order of the source."""
        return [("connect", self._connect)] + [
            (name, getattr(self, name))
            for name, member in vars(type(self)).items()
            if inspect.iscoroutinefunction(member) and not name.startswith("_")
        ]

    async def _connect(self) -> None:
        version = MODERN_VERSION if self.modern else LEGACY_VERSION
        expect_equal(self.client.protocol_version, version, "negotiated version")
        expect_equal(version in MODERN_PROTOCOL_VERSIONS, self.modern, "era")
        expect(self.client.server_capabilities.tools is not None, "no tools capability")


@asynccontextmanager
async def followed(checks: Checks, uri: str) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Subscribes to a resource; the yielded function waits for an update."""
    client, peer = checks.client, checks.peer
    if not checks.modern:
        await client.subscribe_resource(uri)
        peer.updated.clear()
        yield lambda: peer.wait_for("the update", lambda: uri in peer.updated)
        await client.unsubscribe_resource(uri)
        return
    async with client.listen(resource_subscriptions=[uri]) as events:

        async def updated() -> None:
            with anyio.move_on_after(ARRIVAL_SECONDS):
                expect_equal(await anext(aiter(events)), ResourceUpdated(uri=uri), "event")
                return
            raise Failure(f"the update did not arrive within {ARRIVAL_SECONDS} s")

        yield updated


async def pages(listing: Callable[..., Awaitable[Any]]) -> AsyncIterator[Any]:
    """Every page of a listing."""
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await listing(cursor=cursor)
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return
    raise AssertionError(f"the listing does not end after {MAX_PAGES} pages")


async def listed_tools(client: Client) -> list[types.Tool]:
    """Every tool, with unique names."""
    tools = [tool async for page in pages(client.list_tools) for tool in page.tools]
    names = [tool.name for tool in tools]
    expect_equal(len(names), len(set(names)), "distinct tool names")
    return tools


async def listed_resources(client: Client) -> list[types.Resource]:
    """Every resource on offer."""
    return [r async for page in pages(client.list_resources) for r in page.resources]


def text_of(result: types.CallToolResult) -> str:
    """The text blocks of a result."""
    blocks = result.content
    return "\n".join(block.text for block in blocks if isinstance(block, types.TextContent))


async def call(client: Client, tool: str, **arguments: object) -> str:
    """Calls a tool that must not fail, and returns its text."""
    result = await client.call_tool(tool, arguments)
    expect(not result.is_error, f"{tool} failed: {text_of(result)}")
    return text_of(result)
