"""Generates arguments for an operation by its schemas, with characters that are hard to encode."""

from __future__ import annotations

import base64
import random

from documents import Operation

WORDS = ["a", "blue", "a b", "x&y=z", "50%", "a/b", "q?r#s", "p+q", "é", "1,2", "u;v", "[w]", "k:v@h", "t|u", "~-._", "\"'"]
PLAIN = ["a", "blue", "x-y", "z9", "long word"]


def value(rng: random.Random, schema: dict, words: list[str]) -> object:
    if schema.get("enum"):
        return rng.choice(schema["enum"])
    kind = schema.get("type")
    if kind == "integer":
        return rng.randint(max(0, schema.get("minimum", 0)), 99)
    if kind == "number":
        return rng.choice([0.5, 1.25, 7])
    if kind == "boolean":
        return rng.random() < 0.5
    if schema.get("format") == "binary":
        return base64.b64encode(rng.randbytes(rng.randint(1, 20))).decode()
    if kind == "array":
        return [value(rng, schema.get("items", {}), words) for _ in range(rng.randint(1, 3))]
    if kind == "object":
        named = schema.get("properties") or {}
        found = {
            name: value(rng, of, words)
            for name, of in named.items()
            if name in schema.get("required", []) or rng.random() < 0.7
        }
        if isinstance(schema.get("additionalProperties"), dict):
            found |= {key: value(rng, schema["additionalProperties"], words) for key in ("k", "l m")}
        return found or ({name: value(rng, of, words) for name, of in list(named.items())[:1]})
    return rng.choice(words)


def of_path(rng: random.Random, operation: Operation, name: str, schema: dict) -> object:
    """A value for a path, which may have several segments if the path allows it."""
    if "=projects/*" in operation.path and name == "name":
        return f"projects/{rng.choice(PLAIN)}/operations/{rng.choice(PLAIN)}"
    if "{+" in operation.path or operation.id == "readFile":
        return "/".join(rng.choice(["a", "b c", "d:e", "é"]) for _ in range(rng.randint(1, 3)))
    return value(rng, schema, WORDS)


def arguments(rng: random.Random, operation: Operation) -> tuple[dict, object]:
    """Values by (place, name), and the body; None for no body."""
    given = {}
    fixed = operation.path.partition("#")[0].partition("?")[2]
    fixed = {pair.partition("=")[0] for pair in fixed.split("&") if "{" not in pair}
    for parameter in operation.parameters:
        # A query parameter with a fixed value in the path is not an argument.
        if parameter.location == "query" and parameter.name in fixed:
            continue
        if not parameter.required and rng.random() < 0.3:
            continue
        words = PLAIN if parameter.location in ("header", "cookie") and not parameter.content else WORDS
        if parameter.location == "path":
            given[("path", parameter.name)] = of_path(rng, operation, parameter.name, parameter.schema)
        else:
            given[(parameter.location, parameter.name)] = value(rng, parameter.schema, words)
    body = operation.body
    if body is None or not body.required and rng.random() < 0.3:
        return given, None
    if body.schema.get("type") == "object" and not body.schema.get("properties"):
        return given, None
    return given, value(rng, body.schema, WORDS)
