"""Notifications about lists."""

from __future__ import annotations

from typing import Any

from plain import TOOLS, Json, Plain


class ChangedAfterList(Plain):
    """`list_changed` follows each list, although it does not change."""

    watched = True

    def call(self, name: str, arguments: Json) -> Any:
        # How often the lists have been read.
        text = str(self.tools_read) if name == "readings" else self.text(name, arguments)["text"]
        return {"content": [{"type": "text", "text": text}]}

    def after(self, method: str) -> list[Json]:
        changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        return [changed] if method == "tools/list" else []


class ChangedAlways(ChangedAfterList):
    """`list_changed` follows each list, which has a new tool each time."""

    def tools(self, cursor: str | None) -> Any:
        return {"tools": [*TOOLS, {**TOOLS[0], "name": f"new{self.tools_read}"}]}


class ChangedUnknownMembers(ChangedAfterList):
    """`list_changed` has `params` that are unknown."""

    def after(self, method: str) -> list[Json]:
        return [{**changed, "params": {"tools": [], "_meta": {}}} for changed in super().after(method)]


class ChangedOfUndeclared(Plain):
    """Changes are announced of what is not declared."""

    def after(self, method: str) -> list[Json]:
        if method != "tools/call":
            return []
        kinds = ("prompts", "resources", "roots")
        return [{"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed"} for kind in kinds]


class UpdatedUnasked(Plain):
    """Updates come of resources that are not watched."""

    def before(self, message: Json) -> list[Json]:
        return [{"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "odd://none", "title": "x"}}]
