"""Converts type hints to JSON Schema, and JSON to the hints' types."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from typing import Any, Annotated, Literal, Union

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Any: {},
}


def schema_of(hint: Any) -> dict[str, Any]:
    """The JSON Schema of a type hint. A string in `Annotated` is the description, a dictionary adds members."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        schema = dict(schema_of(arguments[0]))
        for note in arguments[1:]:
            schema |= {"description": note} if isinstance(note, str) else note if isinstance(note, dict) else {}
        return schema
    if hint in _PLAIN:
        return _PLAIN[hint]
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(argument) for argument in arguments]}
    if hint is list or origin in (list, set, tuple, typing.get_origin(typing.Sequence[int])):
        items = [argument for argument in arguments if argument is not Ellipsis]
        return {"type": "array"} | ({"items": schema_of(items[0])} if len(items) == 1 else {})
    if hint is dict or origin is dict:
        return {"type": "object"} | ({"additionalProperties": schema_of(arguments[1])} if arguments else {})
    if hasattr(hint, "model_json_schema"):
        return hint.model_json_schema()
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        fields = dataclasses.fields(hint)
        missing = dataclasses.MISSING
        needed = [f.name for f in fields if f.default is missing and f.default_factory is missing]
        return object_of({field.name: hints[field.name] for field in fields}, needed)
    if typing.is_typeddict(hint):
        return object_of(typing.get_type_hints(hint, include_extras=True), sorted(hint.__required_keys__))
    raise TypeError(f"no JSON Schema for {hint!r}; give the tool a schema of its own")


def object_of(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    """The schema of an object with these members."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: schema_of(hint) for name, hint in properties.items()},
    }
    return schema | ({"required": required} if required else {})


def decode(hint: Any, value: Any) -> Any:
    """Converts JSON to the hint's type: enumerations, dataclasses and models. Other values stay as they are."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return decode(arguments[0], value)
    if origin in (Union, types.UnionType):
        others = [argument for argument in arguments if argument is not type(None)]
        return decode(others[0], value) if value is not None and len(others) == 1 else value
    if origin is list and isinstance(value, list):
        return [decode(arguments[0], item) for item in value]
    if hasattr(hint, "model_validate"):
        return hint.model_validate(value)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(value)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type) and isinstance(value, dict):
        hints = typing.get_type_hints(hint, include_extras=True)
        return hint(**{name: decode(hints.get(name, Any), item) for name, item in value.items()})
    return value


def encode(value: Any) -> Any:
    """Converts a tool's return value to JSON."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, dict):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [encode(item) for item in value]
    return value
