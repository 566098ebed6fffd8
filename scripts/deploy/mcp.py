"""A minimal MCP client, which checks that a deployment serves both eras and passes streams on at once."""

import json
import time
import urllib.request

PATIENCE = 30


def post(url, body, headers):
    # The host name that local clients would use; the address belongs to a namespace.
    headers = {"Host": "localhost:8080", "Content-Type": "application/json",
               "Accept": "application/json, text/event-stream"} | headers
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    return urllib.request.urlopen(request, timeout=PATIENCE)


def messages(answer):
    """The messages of an answer, JSON or stream, each with its time of arrival."""
    if answer.headers.get_content_type() == "application/json":
        yield time.monotonic(), json.load(answer)
        return
    for line in answer:
        if line.startswith(b"data:") and line[5:].strip():
            yield time.monotonic(), json.loads(line[5:])


def response(answer):
    for _, message in messages(answer):
        if "method" not in message:
            if "error" in message:
                raise RuntimeError(message["error"])
            return message["result"]
    raise RuntimeError("the stream ended without a response")


def modern(url, tool, arguments):
    """A call of 2026-07-28."""
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments, "_meta": meta}}
    return response(post(url, body, {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool}))


class Session:
    """A session of 2025-11-25."""

    def __init__(self, url):
        self.url, self.id = url, 0
        body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "deploy", "version": "1"}}}
        answer = post(url, body, {})
        self.headers = {"Mcp-Session-Id": answer.headers["Mcp-Session-Id"], "MCP-Protocol-Version": "2025-11-25"}
        response(answer)
        post(url, {"jsonrpc": "2.0", "method": "notifications/initialized"}, self.headers).read()

    def call(self, tool, arguments, meta=None):
        """The answer of a call, for `response` or `messages`."""
        self.id += 1
        params = {"name": tool, "arguments": arguments} | ({"_meta": meta} if meta else {})
        body = {"jsonrpc": "2.0", "id": self.id, "method": "tools/call", "params": params}
        return post(self.url, body, self.headers)
