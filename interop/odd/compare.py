"""Finds disadvantages of Shoal over a direct connection."""

from __future__ import annotations

from typing import Any

from plain import FAILS, WHY

Seen = dict[str, Any]


def worse(direct: Seen, shoal: Seen) -> list[tuple[str, str]]:
    """The steps that are worse through Shoal, and how."""
    found: list[tuple[str, str]] = []
    for step, expected in direct.items():
        got = shoal.get(step, shoal.get("connect"))
        if isinstance(expected, Exception):
            found += [(step, f"{got} does not say why")] if WHY in str(expected) and fails(got) and WHY not in str(got) else []
            continue
        if expected == FAILS:
            found += [(step, f"{shown(got)} instead of a failure in time")] if not fails(got) else []
        elif expected == WHY:
            found += [(step, f"{shown(got)} does not say why")] if not fails(got) or WHY not in str(got) else []
        elif isinstance(got, Exception):
            found.append((step, f"{type(got).__name__}: {got}"))
        elif step == "tools":
            found += [(step, lost) for lost in lost_of_tools(expected, got)]
        elif without_defaults(got) != without_defaults(expected) and not (isinstance(expected, list) and set(expected) <= set(got)):
            found.append((step, f"{shown(got)} instead of {shown(expected)}"))
    if isinstance(shoal.get("quiet"), Exception):
        found.append(("quiet", str(shoal["quiet"])))
    return found


def fails(got: Any) -> bool:
    """Whether a step ended with an error in time."""
    if isinstance(got, Exception):
        return not isinstance(got, TimeoutError) and str(got) != "no answer"
    return isinstance(got, dict) and got.get("isError") is True


def without_defaults(got: Any) -> Any:
    """A success may have `isError: false`, and absent members may be null."""
    if not isinstance(got, dict):
        return got
    return {name: value for name, value in got.items() if value is not None and not (name == "isError" and value is False)}


def shown(got: Any) -> str:
    return repr(got)[:150]


def lost_of_tools(direct: Seen, shoal: Seen) -> list[str]:
    """Missing tools and parameters, except those of tools that come and go."""
    lost = []
    for name, schema in direct.items():
        if name not in shoal:
            lost += [] if name.startswith("new") else [f"{name} is lost"]
            continue
        lost += [f"{name}: {parameter} is lost" for parameter in parameters(schema) - parameters(shoal[name])]
        if len(shoal) < len(direct):
            lost.append(f"{len(shoal)} tools instead of {len(direct)}")
    return lost


def parameters(schema: Any) -> set[str]:
    """All names of properties in a schema."""
    if isinstance(schema, list):
        return {name for each in schema for name in parameters(each)}
    if not isinstance(schema, dict):
        return set()
    own = schema.get("properties")
    return set(own if isinstance(own, dict) else ()) | {name for each in schema.values() for name in parameters(each)}
