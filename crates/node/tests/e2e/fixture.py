"""A stdio MCP server of 2025-11-25 with one tool, as small as it can be."""

import json
import sys

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


def result_of(method, params):
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "fixture", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        text = params["arguments"]["text"].upper()
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
