"""A minimal stdio MCP server of 2025-11-25 with a few tools."""

import json
import os
import sys
import time

TOOL = {
    "name": "shout",
    "description": "Returns its argument in capitals.",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    },
    "annotations": {"readOnlyHint": True},
}
VARIABLE = {**TOOL, "name": "variable", "description": "Returns an environment variable."}


GRUMBLE = {**TOOL, "name": "grumble", "description": "Writes a thousand lines to standard error."}
PROCESS = {**TOOL, "name": "process", "description": "Returns the id of the server's process."}
WAIT = {**TOOL, "name": "wait", "annotations": {}, "description": "As process, once there is a file of this name."}


def result_of(method, params):
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "fixture", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [TOOL, VARIABLE, GRUMBLE, PROCESS, WAIT]}
    if method == "tools/call":
        text = params["arguments"]["text"]
        if params["name"] == "grumble":
            print("".join(f"{text} {line} {100 * '.'}\n" for line in range(1000)), file=sys.stderr)
        while params["name"] == "wait" and not os.path.exists(text):
            time.sleep(0.01)
        if params["name"] in ("process", "wait"):
            return {"content": [{"type": "text", "text": str(os.getpid())}]}
        text = str(os.environ.get(text)) if params["name"] == "variable" else text.upper()
        return {"content": [{"type": "text", "text": text}]}
    if method == "ping":
        return {}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    result = result_of(message["method"], message.get("params", {}))
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if result is None:
        answer["error"] = {"code": -32601, "message": "method not found"}
    else:
        answer["result"] = result
    print(json.dumps(answer), flush=True)
