"""Reads answers to tools/list as the Python SDK does, and checks their schemas as its client does before it validates an answer.

    lists.py < FILES    one path a line; prints a line of JSON for each list that is refused
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from jsonschema import Draft202012Validator
from mcp.types import ListToolsResult


def patterns(schema: object) -> list[str]:
    """The patterns that the validator would search answers for."""
    if isinstance(schema, list):
        return [pattern for item in schema for pattern in patterns(item)]
    if not isinstance(schema, dict):
        return []
    found = [schema["pattern"]] if isinstance(schema.get("pattern"), str) else []
    return found + [pattern for value in schema.values() for pattern in patterns(value)]


def refuse(file: str, kind: str, tool: str | None, what: object) -> None:
    print(json.dumps({"file": file, "kind": kind, "tool": tool, "what": str(what)[:300]}), flush=True)


def main() -> None:
    for line in sys.stdin:
        file = line.strip()
        listed = json.loads(Path(file).read_text())
        try:
            ListToolsResult.model_validate(listed)
        except ValueError as error:
            refuse(file, "python", None, error)
        for tool in listed["tools"]:
            schema = tool.get("outputSchema")
            if schema is None:
                continue
            try:
                Draft202012Validator.check_schema(schema)
                for pattern in patterns(schema):
                    re.compile(pattern)
            except Exception as error:  # noqa: BLE001 - whatever it is, a client would meet it
                refuse(file, "python-schema", tool["name"], error)


if __name__ == "__main__":
    main()
