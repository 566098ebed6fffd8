"""Checks against `@modelcontextprotocol/server-filesystem` behind Shoal."""

from __future__ import annotations

from common import Checks, call, listed_tools, text_of
from harness import expect, expect_equal


class FilesystemChecks(Checks):
    """Checks of a directory with `hello.txt` and `sub/`."""

    async def list_tools(self) -> None:
        names = {tool.name for tool in await listed_tools(self.client)}
        wanted = {"list_directory", "read_text_file", "write_file", "list_allowed_directories"}
        expect(wanted <= names, f"missing tools: {sorted(wanted - names)}")

    async def list_directory(self) -> None:
        text = await call(self.client, "list_directory", path=str(self.directory))
        expect("[FILE] hello.txt" in text and "[DIR] sub" in text, f"odd text {text!r}")

    async def read_file(self) -> None:
        path = self.directory / "hello.txt"
        text = await call(self.client, "read_text_file", path=str(path))
        expect_equal(text, path.read_text(), "text")

    async def write_file(self) -> None:
        path = self.directory / "sub" / "python.txt"
        await call(self.client, "write_file", path=str(path), content="written\n")
        expect_equal(path.read_text(), "written\n", "text")

    async def outside(self) -> None:
        result = await self.client.call_tool("read_text_file", {"path": "/etc/hostname"})
        expect(result.is_error, f"the server gave away {text_of(result)!r}")
