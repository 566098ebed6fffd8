"""Tools, prompts and resources that servers have and do not list."""

from __future__ import annotations

from typing import Any

from plain import TOOLS, Plain


class UnlistedPrompt(Plain):
    """A prompt is not listed, beside others."""

    def prompts(self) -> Any:
        return {"prompts": [{"name": "other"}]}


class UnlistedPrompts(Plain):
    """No prompt is listed."""

    def prompts(self) -> Any:
        return {"prompts": []}


class UnlistedResource(Plain):
    """A resource is not listed, and no template is."""

    def resources(self) -> Any:
        return {"resources": [{"uri": "odd://other", "name": "other"}]}

    def templates(self) -> Any:
        return {"resourceTemplates": []}


class UnlistedResources(Plain):
    """No resource is listed."""

    def resources(self) -> Any:
        return {"resources": []}

    def templates(self) -> Any:
        return {"resourceTemplates": []}


class UnlistedTool(Plain):
    """A tool is not listed, beside others."""

    def tools(self, cursor: str | None) -> Any:
        return {"tools": [tool for tool in TOOLS if tool["name"] != "tool1"]}
