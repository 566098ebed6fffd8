"""A client of HTTP+SSE of 2024-11-05: posts to the URL from its stream, and reads the answers on the stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from odd_requests import get

LONGEST_HEAD = 1 << 16


class OldStream:
    """An open stream."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def data(self) -> str:
        """The data of the next event. Events are not split, so chunk sizes are lines of their own."""
        while line := await self._reader.readline():
            if line.startswith(b"data:"):
                return line.removeprefix(b"data:").strip().decode()
        raise asyncio.IncompleteReadError(b"", None)

    async def answer(self, id: Any) -> bytes:
        """The answer to the request with this id."""
        while True:
            text = await self.data()
            with suppress(json.JSONDecodeError):
                if json.loads(text).get("id") == id:
                    return text.encode()


@asynccontextmanager
async def old_stream(port: int) -> AsyncIterator[tuple[OldStream, str]]:
    """A stream and its URL for posts."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=LONGEST_HEAD)
    try:
        request = get(target="/sse", mcp_session_id=None, mcp_protocol_version=None)
        writer.write(request.encoded(f"127.0.0.1:{port}", ""))
        stream = OldStream(reader)
        yield stream, await stream.data()
    finally:
        writer.close()
