"""Reads documents for the encoder, without Shoal's code."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import yaml

METHODS = ["get", "put", "post", "delete", "patch", "head", "options", "query"]


class Loader(yaml.SafeLoader):
    """YAML with JSON's types: `NO` and dates are strings."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for word in ("true", "false"):
    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", yaml.reader.re.compile("^(?:true|false)$"), [word[0]])


@dataclass
class Parameter:
    name: str
    location: str
    schema: dict
    required: bool = False
    style: str | None = None
    explode: bool | None = None
    reserved: bool = False
    content: str | None = None


@dataclass
class Body:
    media: str
    schema: dict
    required: bool = False
    encoding: dict = field(default_factory=dict)


@dataclass
class Operation:
    id: str
    method: str
    path: str
    parameters: list[Parameter]
    body: Body | None


class Document:
    """A document and the files beside it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.files: dict[Path, object] = {}
        self.root = self.load(file)

    def load(self, file: Path) -> object:
        file = file.resolve()
        if file not in self.files:
            self.files[file] = yaml.load(file.read_text(encoding="utf-8-sig"), Loader)
        return self.files[file]

    def resolve(self, value: object, base: Path | None = None) -> tuple[object, Path]:
        """The target of a reference, and its file."""
        base = base or self.file
        while isinstance(value, dict) and isinstance(value.get("$ref"), str):
            target, _, pointer = value["$ref"].partition("#")
            base = (base.parent / target) if target else base
            value = self.load(base)
            for step in pointer.split("/")[1:]:
                step = step.replace("~1", "/").replace("~0", "~")
                value = value[int(step)] if isinstance(value, list) else value[step]
        return value, base

    def schema(self, schema: object, base: Path, depth: int = 4) -> dict:
        """A schema without references, and with `allOf` merged."""
        schema, base = self.resolve(schema, base)
        whole = dict(schema or {})
        for part in whole.pop("allOf", []):
            part = self.schema(part, base, depth)
            whole.setdefault("properties", {}).update(part.get("properties", {}))
            whole["required"] = [*whole.get("required", []), *part.get("required", [])]
            whole["type"] = "object"
        if depth:
            properties = whole.get("properties") or {}
            whole["properties"] = {name: self.schema(of, base, depth - 1) for name, of in properties.items()}
            if "items" in whole:
                whole["items"] = self.schema(whole["items"], base, depth - 1)
        return whole

    def operations(self) -> list[Operation]:
        found = []
        for path, item in (self.root.get("paths") or {}).items():
            item, base = self.resolve(item)
            others = item.get("additionalOperations") or {}
            named = [(method.upper(), item[method]) for method in METHODS if item.get(method)]
            for method, operation in [*named, *others.items()]:
                operation, own = self.resolve(operation, base)
                found.append(self.operation(method, path, operation, own, (item.get("parameters"), base)))
        return found

    def operation(self, method: str, path: str, operation: dict, base: Path, common: tuple) -> Operation:
        lists = [common, (operation.get("parameters"), base)]
        written: dict[tuple, tuple[dict, Path]] = {}
        for parameters, at in lists:
            parameters, at = self.resolve(parameters, at)
            for parameter in filter(None, parameters or []):
                parameter, own = self.resolve(parameter, at)
                written[(parameter["name"], parameter["in"])] = (parameter, own)
        read = self.old if "swagger" in self.root else self.new
        parameters, body = read(operation, base, list(written.values()))
        return Operation(str(operation["operationId"]), method, path, parameters, body)

    def new(self, operation: dict, base: Path, written: list[tuple[dict, Path]]) -> tuple[list[Parameter], Body | None]:
        parameters = []
        for parameter, own in written:
            content = next(iter((parameter.get("content") or {}).items()), (None, {}))
            schema = parameter.get("schema") or content[1].get("schema") or {}
            parameters.append(Parameter(
                parameter["name"], parameter["in"], self.schema(schema, own), str(parameter.get("required")).lower() == "true",
                parameter.get("style"), parameter.get("explode"), bool(parameter.get("allowReserved")), content[0],
            ))
        if not operation.get("requestBody"):
            return parameters, None
        body, own = self.resolve(operation["requestBody"], base)
        media, content = next(iter(body["content"].items()))
        schema = self.schema(content.get("schema"), own)
        return parameters, Body(media, schema, bool(body.get("required")), content.get("encoding") or {})

    def old(self, operation: dict, _: Path, written: list[tuple[dict, Path]]) -> tuple[list[Parameter], Body | None]:
        """Swagger 2.0."""
        consumes = operation.get("consumes", self.root.get("consumes", ["application/json"]))
        parameters, body, fields = [], None, []
        for parameter, own in written:
            schema = self.schema(parameter.get("schema") or {key: parameter[key] for key in ("type", "items") if key in parameter}, own)
            if parameter["in"] == "body":
                body = Body(consumes[0], schema, bool(parameter.get("required")))
            elif parameter["in"] == "formData":
                fields.append((parameter, schema))
            else:
                style = parameter.get("collectionFormat", "csv") if parameter.get("type") == "array" else None
                parameters.append(Parameter(parameter["name"], parameter["in"], schema, bool(parameter.get("required")), style))
        if fields:
            properties = {
                parameter["name"]: {"type": "string", "format": "binary"} if parameter["type"] == "file" else schema
                for parameter, schema in fields
            }
            required = [parameter["name"] for parameter, _ in fields if parameter.get("required")]
            encoding = {parameter["name"]: {"style": parameter["collectionFormat"]} for parameter, _ in fields if "collectionFormat" in parameter}
            body = Body(consumes[0], {"type": "object", "properties": properties, "required": required}, bool(required), encoding)
        return parameters, body
