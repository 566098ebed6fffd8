"""Contents of results, resources and prompts."""

from __future__ import annotations

from typing import Any, ClassVar

from plain import Json, Plain, Refused


class _Content(Plain):
    """A tool answers with an odd content, behind a plain one."""

    odd: ClassVar[Any] = {}

    def call(self, name: str, arguments: Json) -> Any:
        return {"content": [self.text(name, arguments), self.odd]}


class ContentJson(_Content):
    """The type of a content is `json`."""

    odd = {"type": "json", "json": {"x": 1}}


class ContentNulls(_Content):
    """Optional members of a content are null, as serializers of C# and Python write it."""

    odd = {"type": "text", "text": "x", "annotations": None, "_meta": None}


class ContentMembers(_Content):
    """A content has unknown members."""

    odd = {"type": "text", "text": "x", "meta": None, "format": "markdown"}


class ContentAudience(_Content):
    """A content is for an unknown audience, with a priority above 1."""

    odd = {"type": "text", "text": "x", "annotations": {"audience": ["system"], "priority": 10}}


class ContentTextNumber(_Content):
    """The text of a content is a number."""

    odd = {"type": "text", "text": 5}


class ContentTextNull(_Content):
    """The text of a content is null."""

    odd = {"type": "text", "text": None}


class ContentBare(_Content):
    """A content is a text alone."""

    odd = "done"


class ContentTypeMissing(_Content):
    """A content has no type."""

    odd = {"text": "x"}


class ContentImageUrl(_Content):
    """The data of an image are a URL."""

    odd = {"type": "image", "data": "data:image/png;base64,iVBORw0KGgo=", "mimeType": "image/png"}


class ContentImageLines(_Content):
    """The data of an image are Base64 in lines, without a padding."""

    odd = {"type": "image", "data": "iVBO\nRw0KGgo", "mimeType": ""}


class ContentLinkBare(_Content):
    """A resource's link has no name."""

    odd = {"type": "resource_link", "uri": "odd://one"}


class ContentResourceBare(_Content):
    """An embedded resource has neither text nor blob."""

    odd = {"type": "resource", "resource": {"uri": "odd://one", "mimeType": "text/plain"}}


class ContentResourceNulls(_Content):
    """Optional members of an embedded resource are null."""

    odd = {"type": "resource", "resource": {"uri": "odd://one", "text": "x", "mimeType": None, "_meta": None}}


class ContentThinking(_Content):
    """The type of a content is one of another protocol."""

    odd = {"type": "tool_use", "id": "1", "name": "x", "input": {}}


class ContentObject(Plain):
    """`content` is one content instead of an array."""

    def call(self, name: str, arguments: Json) -> Any:
        return {"content": self.text(name, arguments)}


class ContentMany(Plain):
    """There are 5,000 contents."""

    def call(self, name: str, arguments: Json) -> Any:
        return {"content": [self.text(name, arguments)] * 5000}


class ReadEmpty(Plain):
    """A resource has no contents."""

    def read(self, uri: str) -> Any:
        return {"contents": []}


class ReadOtherUri(Plain):
    """A resource's contents have another URI."""

    def read(self, uri: str) -> Any:
        return {"contents": [{"uri": "file:///elsewhere", "text": "one"}, {"uri": "odd://two", "text": "two"}]}


class ReadNulls(Plain):
    """Optional members of a resource's contents are null."""

    def read(self, uri: str) -> Any:
        return {"contents": [{"uri": uri, "mimeType": None, "text": "one", "blob": None}]}


class ReadBoth(Plain):
    """A resource has text and blob."""

    def read(self, uri: str) -> Any:
        return {"contents": [{"uri": uri, "text": "one", "blob": "b25l"}]}


class ReadWithoutUri(Plain):
    """A resource's contents have no URI."""

    def read(self, uri: str) -> Any:
        return {"contents": [{"text": "one"}]}


class ReadUnknown(Plain):
    """A resource that is listed is not found, with 2025-11-25's code for it."""

    def read(self, uri: str) -> Any:
        raise Refused(-32002, "Resource not found", uri=uri)


class GetContents(Plain):
    """The content of a prompt's message is an array."""

    def get(self, name: str) -> Any:
        return {"messages": [{"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}]}


class GetText(Plain):
    """The content of a prompt's message is a text."""

    def get(self, name: str) -> Any:
        return {"messages": [{"role": "user", "content": "one"}]}


class GetSystem(Plain):
    """A prompt's message is the system's."""

    def get(self, name: str) -> Any:
        return {"messages": [{"role": "system", "content": {"type": "text", "text": "one"}}]}


class GetNulls(Plain):
    """Optional members of a prompt's messages are null."""

    def get(self, name: str) -> Any:
        return {"description": None, "messages": [{"role": "user", "content": {"type": "text", "text": "one", "annotations": None}}]}


class GetEmpty(Plain):
    """A prompt has no messages."""

    def get(self, name: str) -> Any:
        return {"description": "", "messages": []}
