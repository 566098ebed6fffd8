"""Lists that server-side apply treats as maps: the API server refuses duplicate keys. Kubernetes' schemas define these lists and keys. Also
finds fields that the API server changes, so that the next apply finds a difference.
"""
import functools
import json
from pathlib import Path

import kubernetes_validate

SCHEMAS = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema"
# Defaults that the API server sets before it compares.
DEFAULTS = {"protocol": "TCP"}


@functools.cache
def definitions(version):
    return json.loads((SCHEMAS / f"v{version}.0-local-strict" / "_definitions.json").read_text())["$defs"]


def schema_of(item, version):
    group, _, api = item["apiVersion"].rpartition("/")
    name = "-".join([item["kind"].lower(), *([group.split(".")[0]] if group else []), api])
    path = SCHEMAS / f"v{version}.0-local-strict" / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def incomplete(value, schema, path):
    """A map that server-side apply compares as a whole and the API server extends, so that two managers conflict."""
    if schema.get("x-kubernetes-map-type") == "atomic" and "fieldPath" in schema.get("properties", {}) and "apiVersion" not in value:
        yield f"{path}: has no apiVersion, which the API server adds"


def twice(value, schema, version, path=""):
    """Duplicate keys, with their paths."""
    if "$ref" in schema:
        schema = definitions(version)[schema["$ref"].rsplit("/", 1)[1]]
    if isinstance(value, dict):
        yield from incomplete(value, schema, path)
        rest = schema.get("additionalProperties")
        for name, part in value.items():
            below = schema.get("properties", {}).get(name, rest if isinstance(rest, dict) else {})
            yield from twice(part, below, version, f"{path}.{name}")
    if isinstance(value, list):
        if not value:
            yield f"{path}: is an empty list, which the API server drops and each apply puts in anew"
        keys = schema.get("x-kubernetes-list-map-keys", [])
        found = [tuple(item.get(key, DEFAULTS.get(key)) for key in keys) for item in value] if keys else []
        if schema.get("x-kubernetes-list-type") == "set":
            found = value
        for one in {one for one in found if found.count(one) > 1}:
            yield f"{path}: {one} comes twice"
        for at, item in enumerate(value):
            yield from twice(item, schema.get("items", {}), version, f"{path}[{at}]")


def all_twice(objects, version):
    """Everything in the objects that server-side apply would refuse, and duplicate objects."""
    seen = set()
    for item in objects:
        name = f"{item['kind']} {item['metadata']['name']}"
        if name in seen:
            yield f"{name} comes twice"
        seen.add(name)
        for text in [*twice(item, schema_of(item, version), version), *same_container(item)]:
            yield f"{name}{text}"


def same_container(item):
    """Containers of a pod with the same name, including init containers, which the schemas do not compare."""
    spec = item.get("spec", {})
    pod = spec.get("template", {}).get("spec", spec)
    names = [each["name"] for part in ("initContainers", "containers") for each in pod.get(part) or []]
    for one in {one for one in names if names.count(one) > 1}:
        yield f": two containers are called {one}"
