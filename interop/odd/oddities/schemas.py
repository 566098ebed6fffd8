"""Schemas of tools."""

from __future__ import annotations

from typing import Any, ClassVar

from plain import TOOLS, Plain


class _Schemas(Plain):
    """One tool with an odd schema."""

    schema: ClassVar[Any] = {"type": "object"}

    def tools(self, cursor: str | None) -> Any:
        return {"tools": [{"name": "odd", "inputSchema": self.schema}, *TOOLS]}


class SchemaBooleanProperty(_Schemas):
    """A property's schema is `true`, as the Go SDK writes `any`."""

    schema = {
        "type": "object",
        "properties": {"title": {"type": "string"}, "data": True, "never": False},
        "required": ["title", "data"],
        "additionalProperties": False,
    }


class SchemaNoType(_Schemas):
    """The root has no `type`."""

    schema = {"properties": {"path": {"type": "string"}}, "required": ["path"]}


class SchemaTypeList(_Schemas):
    """The root's `type` is `["object"]`."""

    schema = {"type": ["object"], "properties": {"path": {"type": "string"}}, "required": ["path"]}


class SchemaAnyOf(_Schemas):
    """The root is an `anyOf`."""

    schema = {
        "anyOf": [
            {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
            {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        ]
    }


class SchemaRef(_Schemas):
    """The root is a `$ref`."""

    schema = {
        "$ref": "#/$defs/Args",
        "$defs": {"Args": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}},
    }


class SchemaRequiredNull(_Schemas):
    """`required` is null."""

    schema = {"type": "object", "properties": {"q": {"type": "string"}}, "required": None}


class SchemaPropertiesNull(_Schemas):
    """`properties` is null."""

    schema = {"type": "object", "properties": None}


class SchemaDraft4(_Schemas):
    """Draft-04: `exclusiveMinimum` and a property's `required` are booleans."""

    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "type": "object",
        "properties": {
            "n": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
            "m": {"type": "string", "required": True},
        },
    }


class SchemaEmpty(_Schemas):
    """The schema is `{}`."""

    schema = {}


class SchemaDeep(_Schemas):
    """A property is nested 60 times."""

    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    for _ in range(60):
        schema = {"type": "object", "properties": {"q": schema}}


class SchemaPatternOfJs(_Schemas):
    """A `pattern` is one of JavaScript, with a lookahead and a name."""

    schema = {"type": "object", "properties": {"q": {"type": "string", "pattern": "^(?!x)(?<name>\\p{L}+)\\/$"}}}


class SchemaRefElsewhere(_Schemas):
    """A `$ref` leads to a document elsewhere."""

    schema = {"type": "object", "properties": {"q": {"$ref": "https://example.invalid/q.json"}}}


class SchemaRefNowhere(_Schemas):
    """A `$ref` leads to a definition that is not there, as of zod with old converters."""

    schema = {"type": "object", "properties": {"q": {"$ref": "#/definitions/__schema0"}}}


class SchemaRefItself(_Schemas):
    """A `$ref` leads back to its own schema."""

    schema = {"type": "object", "properties": {"q": {"$ref": "#/properties/q"}, "tree": {"$ref": "#"}}}


class SchemaNullable(_Schemas):
    """`nullable`, `example` and `type: "any"`, as OpenAPI and Python converters write."""

    schema = {"type": "object", "properties": {"q": {"type": "string", "nullable": True, "example": 1}, "r": {"type": "any"}}}


class SchemaFormatUnknown(_Schemas):
    """`format` and `$schema` are unknown."""

    schema = {"$schema": "https://example.invalid/schema", "type": "object", "properties": {"q": {"type": "string", "format": "mm/dd"}}}


class SchemaEnumMixed(_Schemas):
    """An `enum` is empty, another one has values of all kinds."""

    schema = {"type": "object", "properties": {"q": {"enum": []}, "r": {"enum": ["a", 1, None, True, {}, []]}}}


class _Outputs(Plain):
    """The tool that is called has an odd `outputSchema`."""

    schema: ClassVar[Any] = {"type": "object"}

    def tools(self, cursor: str | None) -> Any:
        return {"tools": [{**tool, "outputSchema": self.schema} if tool["name"] == "tool1" else tool for tool in TOOLS]}


class OutputArray(_Outputs):
    """An `outputSchema` is of an array."""

    schema = {"type": "array", "items": {"type": "string"}}


class OutputNull(_Outputs):
    """An `outputSchema` is null."""

    schema = None


class OutputWithoutType(_Outputs):
    """An `outputSchema` has no type."""

    schema = {"anyOf": [{"properties": {"name": {"type": "string"}}}, {"type": "null"}]}


class OutputInvalid(_Outputs):
    """An `outputSchema` has a property whose schema is a text."""

    schema = {"type": "object", "properties": {"name": "string"}}


class OutputPromised(_Outputs):
    """`outputSchema` promises what the result does not have."""

    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


class OutputOther(_Outputs):
    """`structuredContent` is not what `outputSchema` says."""

    schema = {"type": "object", "properties": {"name": {"type": "number"}}, "required": ["name"]}

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        return {"content": [self.text(name, arguments)], "structuredContent": {"name": name}}


class OutputMore(_Outputs):
    """`structuredContent` has more than `outputSchema` lets it."""

    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "additionalProperties": False}

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        return {"content": [self.text(name, arguments)], "structuredContent": {"name": name, "took": 1}}
