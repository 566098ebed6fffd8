"""A stdio server of the legacy era with four tools.

Two have ordinary schemas: an expression tree, recursive and with alternatives, and a rule for passwords. The third asks its client,
and waits for the answer. The fourth ends the process. An argument comes before their names.
"""

import json
import os
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
PREFIX = "".join(sys.argv[1:])
EVALUATE = {"name": f"{PREFIX}evaluate", "description": "Evaluates.", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}}
CONFIRM = {"name": f"{PREFIX}confirm", "description": "Asks.", "inputSchema": {"type": "object"}}
QUESTION = {"message": "Really?", "requestedSchema": {"type": "object", "properties": {}}}
CRASH = {"name": f"{PREFIX}crash", "description": "Ends the process.", "inputSchema": {"type": "object"}}
PASSWORD = {"type": "string", "pattern": "(?=.*[A-Z])(?=.*[0-9]).{8,}"}
SIGN_UP = {
    "name": f"{PREFIX}sign_up",
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
        return {"tools": [EVALUATE, CONFIRM, SIGN_UP, CRASH]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "0"}]}
    return {}


def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


asking = []
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "tools/call" and message["params"]["name"] == CRASH["name"]:
        os._exit(3)
    if message.get("method") == "tools/call" and message["params"]["name"] == CONFIRM["name"]:
        asking.append(message["id"])
        say({"id": f"question-{message['id']}", "method": "elicitation/create", "params": QUESTION})
    elif message.get("method") == "notifications/cancelled":
        asking = [call for call in asking if call != message["params"]["requestId"]]
    elif "id" in message and "method" in message:
        say({"id": message["id"], "result": answer(message["method"])})
    else:
        for call in [call for call in asking if message.get("id") == f"question-{call}"]:
            asking.remove(call)
            text = "refused" if "error" in message else "answered"
            say({"id": call, "result": {"content": [{"type": "text", "text": text}]}})
