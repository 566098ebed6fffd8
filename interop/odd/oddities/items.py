"""Items of lists."""

from __future__ import annotations

from typing import Any, ClassVar

from plain import PROMPT, RESOURCE, TEMPLATE, TOOLS, Json, Plain


class _Tool(Plain):
    """One more tool, or one that replaces the one of its name."""

    odd: ClassVar[Json] = {}

    def tools(self, cursor: str | None) -> Any:
        name = self.odd.get("name", "odd")
        others = [tool for tool in TOOLS if tool["name"] != name]
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}, **self.odd}, *others]}


class ToolNulls(_Tool):
    """Optional members of a tool are null, as serializers of C# and Java write it."""

    odd = {"name": "tool1", "title": None, "description": None, "annotations": None, "outputSchema": None, "_meta": None, "icons": None, "execution": None}


class ToolDescriptionNull(_Tool):
    """The description of a tool is null."""

    odd = {"name": "tool1", "description": None}


class ToolAnnotationsNulls(_Tool):
    """The hints of a tool are null."""

    odd = {"name": "tool1", "annotations": {"title": None, "readOnlyHint": None, "destructiveHint": None}}


class ToolAnnotationsEmpty(_Tool):
    """A tool's annotations are empty, and have unknown members."""

    odd = {"name": "tool1", "annotations": {"audience": "admins", "x": 1}}


class ToolHintsText(_Tool):
    """A tool's hint is a text."""

    odd = {"name": "tool1", "annotations": {"readOnlyHint": "true"}}


class ToolMembers(_Tool):
    """A tool has unknown members."""

    odd = {"name": "tool1", "parameters": {"type": "object"}, "version": 2, "enabled": True, "tags": ["x"], "input_schema": {}}


class ToolIconsOdd(_Tool):
    """A tool's icon has no MIME type, and `sizes` is a text."""

    odd = {"name": "tool1", "icons": [{"src": "data:,x"}, {"src": "icon.png", "sizes": "48x48"}]}


class ToolWithoutSchema(_Tool):
    """A tool has no `inputSchema`."""

    def tools(self, cursor: str | None) -> Any:
        return {"tools": [{"name": "odd"}, *TOOLS]}


class ToolSchemaNull(_Tool):
    """A tool's `inputSchema` is null."""

    odd = {"inputSchema": None}


class ToolTaskSupportOdd(_Tool):
    """A tool supports tasks in an unknown way."""

    odd = {"name": "tool1", "execution": {"taskSupport": "always"}}


class ToolNamesOdd(Plain):
    """Names of tools have blanks, dots, slashes, letters beyond ASCII, or 128 characters."""

    def tools(self, cursor: str | None) -> Any:
        names = ("with blank", "a.b.c", "a/b", "Ünï", "x" * 128, "-", "$ref", "UPPER", "emoji😀")
        return {"tools": [*TOOLS, *({"name": name, "inputSchema": {"type": "object"}} for name in names)]}


class ToolNameLong(_Tool):
    """A tool's name has 300 characters."""

    odd = {"name": "x" * 300}


class ToolNameEmpty(_Tool):
    """A tool's name is empty."""

    odd = {"name": ""}


class _Resource(Plain):
    """The resource is odd."""

    odd: ClassVar[Json] = {}

    def resources(self) -> Any:
        return {"resources": [{**RESOURCE, **self.odd}]}


class ResourceNulls(_Resource):
    """Optional members of a resource are null."""

    odd = {"title": None, "description": None, "mimeType": None, "annotations": None, "size": None, "_meta": None}


class ResourceUriRelative(_Resource):
    """The URI of a resource has no scheme."""

    odd = {"uri": "docs/read me.md"}

    def read(self, uri: str) -> Any:
        return super().read("docs/read me.md")


class ResourceUriBlanks(_Resource):
    """The URI of a resource has blanks and letters beyond ASCII."""

    odd = {"uri": "odd://a b/ä?q=<x>#y"}


class ResourceUriUpperCase(_Resource):
    """The URI of a resource is not in its normal form."""

    odd = {"uri": "ODD://Host:80/../a"}


class ResourceWithoutName(Plain):
    """A resource has no `name`."""

    def resources(self) -> Any:
        return {"resources": [{"uri": "odd://one"}]}


class ResourceSizeFloat(_Resource):
    """The size of a resource is a float, and its MIME type no such type."""

    odd = {"size": 12.0, "mimeType": "markdown"}


class ResourcePriorityOdd(_Resource):
    """A resource's priority is above 1, and its audience unknown."""

    odd = {"annotations": {"priority": 5, "audience": ["system"], "lastModified": "yesterday"}}


class ResourcesTwice(Plain):
    """A resource is listed twice."""

    def resources(self) -> Any:
        return {"resources": [RESOURCE, RESOURCE]}


class TemplateInvalid(Plain):
    """A template is none."""

    def templates(self) -> Any:
        return {"resourceTemplates": [TEMPLATE, {"uriTemplate": "odd://{name", "name": "open"}, {"uriTemplate": "{}", "name": "empty"}]}


class TemplateWithoutName(Plain):
    """A template has no `name`."""

    def templates(self) -> Any:
        return {"resourceTemplates": [{"uriTemplate": "odd://{name}"}]}


class _Prompt(Plain):
    """The prompt is odd."""

    odd: ClassVar[Json] = {}

    def prompts(self) -> Any:
        return {"prompts": [{**PROMPT, **self.odd}]}


class PromptArgumentsNull(_Prompt):
    """A prompt's arguments are null."""

    odd = {"arguments": None}


class PromptArgumentsObject(_Prompt):
    """A prompt's arguments are a schema."""

    odd = {"arguments": {"type": "object", "properties": {"q": {"type": "string"}}}}


class PromptRequiredNull(_Prompt):
    """Optional members of a prompt's argument are null."""

    odd = {"title": None, "arguments": [{"name": "q", "description": None, "required": None}]}


class PromptArgumentsTyped(_Prompt):
    """A prompt's argument has unknown members."""

    odd = {"arguments": [{"name": "q", "type": "string", "default": 1, "schema": {}}]}


class PromptsTwice(Plain):
    """A prompt is listed twice."""

    def prompts(self) -> Any:
        return {"prompts": [PROMPT, PROMPT]}
