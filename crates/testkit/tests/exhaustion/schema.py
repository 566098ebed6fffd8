"""A stdio server whose tools have ordinary schemas: a recursive expression with alternatives, and a rule for passwords."""

import json
import sys

LEAF = {"type": "object", "properties": {"value": {"type": "number"}}, "required": ["value"], "additionalProperties": False}
NODE = {
    "type": "object",
    "properties": {"left": {"$ref": "#/$defs/expression"}, "right": {"$ref": "#/$defs/expression"}},
    "required": ["left", "right"],
    "additionalProperties": False,
}
EXPRESSION = {"anyOf": [{"$ref": "#/$defs/leaf"}, {"$ref": "#/$defs/sum"}, {"$ref": "#/$defs/product"}]}
SCHEMA = {
    "type": "object",
    "properties": {"expression": {"$ref": "#/$defs/expression"}},
    "required": ["expression"],
    "$defs": {"leaf": LEAF, "sum": NODE, "product": NODE, "expression": EXPRESSION},
}
EVALUATE = {"name": "evaluate", "description": "Evaluates.", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}}
PASSWORD = {"type": "string", "pattern": "(?=.*[A-Z])(?=.*[0-9]).{8,}"}
SIGN_UP = {
    "name": "sign_up",
    "description": "Signs up.",
    "inputSchema": {
        "type": "object",
        "properties": {"password": PASSWORD, "hints": {"type": "array", "items": PASSWORD}},
        "patternProperties": {"(?=a*b)a": {"type": "string"}},
    },
    "annotations": {"readOnlyHint": True},
}


def answer(method):
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "schema", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [EVALUATE, SIGN_UP]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "0"}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        said = {"jsonrpc": "2.0", "id": message["id"], "result": answer(message["method"])}
        print(json.dumps(said), flush=True)
