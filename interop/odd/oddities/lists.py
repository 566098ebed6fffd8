"""Lists that are refused, cut, repeated or endless."""

from __future__ import annotations

from typing import Any

from plain import TOOLS, Json, Plain, Refused


class ResourcesError(Plain):
    """`resources/list` ends in -32603."""

    def resources(self) -> Any:
        raise Refused(-32603, "not implemented")


class TemplatesError(Plain):
    """`resources/templates/list` ends in -32600."""

    def templates(self) -> Any:
        raise Refused(-32600, "unknown request")


class PromptsError(Plain):
    """`prompts/list` ends in -32602."""

    def prompts(self) -> Any:
        raise Refused(-32602, "unknown method")


class ToolsError(Plain):
    """`tools/list` ends in -32603; there are resources and prompts."""

    def tools(self, cursor: str | None) -> Any:
        raise Refused(-32603, "no database")


class ResourcesSilent(Plain):
    """`resources/list` has no answer."""

    transports = ("stdio",)

    def resources(self) -> Any:
        return None


class PromptsErrorAtFirst(Plain):
    """`prompts/list` ends in -32603 the first two times."""

    asked = 0

    def prompts(self) -> Any:
        self.asked += 1
        if self.asked < 3:
            raise Refused(-32603, "not yet")
        return super().prompts()


class PromptsArray(Plain):
    """The result of `prompts/list` is `[]`."""

    def prompts(self) -> Any:
        return []


class ResourcesEmptyObject(Plain):
    """The result of `resources/list` is `{}`."""

    def resources(self) -> Any:
        return {}


class PromptsNull(Plain):
    """`prompts` is null."""

    def prompts(self) -> Any:
        return {"prompts": None}


class CursorEmpty(Plain):
    """`nextCursor` is always `""`, and cursors are ignored."""

    def tools(self, cursor: str | None) -> Any:
        return {"tools": TOOLS, "nextCursor": ""}


class CursorEmptyIsPage(Plain):
    """`nextCursor` `""` leads to a second page."""

    def tools(self, cursor: str | None) -> Any:
        return {"tools": TOOLS[:4], "nextCursor": ""} if cursor is None else {"tools": TOOLS[4:]}


class CursorSame(Plain):
    """`nextCursor` is always the same."""

    def tools(self, cursor: str | None) -> Any:
        return {"tools": TOOLS, "nextCursor": "MTAw"}


class CursorAlternating(Plain):
    """`nextCursor` alternates between two values."""

    def tools(self, cursor: str | None) -> Any:
        return {"tools": TOOLS, "nextCursor": "b" if cursor == "a" else "a"}


class CursorNew(Plain):
    """`nextCursor` is always new, and cursors are ignored."""

    def tools(self, cursor: str | None) -> Any:
        return {"tools": TOOLS, "nextCursor": str(self.tools_read)}


class CursorNull(Plain):
    """`nextCursor` is null on the last page."""

    def tools(self, cursor: str | None) -> Any:
        return {"tools": TOOLS, "nextCursor": None}


class CursorNumber(Plain):
    """`nextCursor` is a number."""

    def tools(self, cursor: str | None) -> Any:
        return {"tools": TOOLS[:4], "nextCursor": 4} if cursor is None else {"tools": TOOLS[4:]}


class PromptsMemberMissing(Plain):
    """The answer to `prompts/list` has neither result nor error."""

    def envelope(self, reply: Json) -> Json:
        is_list = "prompts" in (reply.get("result") or {})
        return {name: value for name, value in reply.items() if name != "result" or not is_list}


class PromptsNotAllowed(Plain):
    """`prompts/list` ends in a code of the server's own, with data."""

    def prompts(self) -> Any:
        raise Refused(1001, "", why=["plan", None])


class ToolsTwice(Plain):
    """A tool is listed twice."""

    def tools(self, cursor: str | None) -> Any:
        return {"tools": [*TOOLS, TOOLS[1]]}


class ToolsMany(Plain):
    """There are 900 tools on one page."""

    def tools(self, cursor: str | None) -> Any:
        return {"tools": [{**TOOLS[0], "name": f"tool{number}"} for number in range(900)]}


class ToolsNone(Plain):
    """There are no tools, though they are declared, and a tool can be called."""

    def tools(self, cursor: str | None) -> Any:
        return {"tools": []}


class ListMembers(Plain):
    """Lists have members that no revision knows."""

    def tools(self, cursor: str | None) -> Any:
        return {"tools": TOOLS, "total": 8, "success": True, "page": {"size": 8}}


class ListTotalNull(Plain):
    """The members of lists that could be absent are null."""

    def tools(self, cursor: str | None) -> Any:
        return {"tools": TOOLS, "nextCursor": None, "_meta": None}
