"""A stdio MCP server that appends each call, unchanged, to the file in its argument."""

import json
import sys

PAY = {
    "name": "pay",
    "description": "Pays.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "amount": {"type": "number"},
            "note": {"type": "string"},
            "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
        },
        "required": ["amount"],
        "additionalProperties": False,
    },
}


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    if message["method"] == "initialize":
        result = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "recorder", "version": "1"},
        }
    elif message["method"] == "tools/list":
        result = {"tools": [PAY]}
    elif message["method"] == "tools/call":
        with open(sys.argv[1], "a", encoding="utf-8") as calls:
            calls.write(line)
        result = {"content": [{"type": "text", "text": "paid"}]}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
