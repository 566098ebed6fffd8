"""Counts the instructions and cache misses of one call in whole servers: `cache.py SHOAL LOADTEST`.

Each server runs under cachegrind twice, with calls of one connection. The difference of both counts has no start and no end in it. Only the
server's user space counts.
"""

import http.client
import json
import re
import subprocess
import sys
import tempfile
import urllib.parse

FEW, MANY = 300, 1300
CACHES = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=524288,8,64"]
TEXT = "x" * 32
LEGACY, MODERN = "2025-11-25", "2026-07-28"
CLIENT = {"name": "count", "version": "1"}


class Client:
    """Calls over one connection."""

    def __init__(self, url: str, modern: bool) -> None:
        parts = urllib.parse.urlsplit(url)
        self._path = parts.path
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
        self._modern = modern
        self._id = 0
        self._headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        if not modern:
            self._initialize()

    def _initialize(self) -> None:
        answer = self._post({"method": "initialize", "params": {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT}})
        self._headers["mcp-protocol-version"] = LEGACY
        if session := answer.headers["mcp-session-id"]:
            self._headers["mcp-session-id"] = session
        self._post({"method": "notifications/initialized"})

    def call(self, tool: str) -> None:
        params = {"name": tool, "arguments": {"text": TEXT}}
        headers = {}
        if self._modern:
            headers = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": tool}
            prefix = "io.modelcontextprotocol/"
            params["_meta"] = {f"{prefix}protocolVersion": MODERN, f"{prefix}clientInfo": CLIENT, f"{prefix}clientCapabilities": {}}
        body = self._post({"method": "tools/call", "params": params}, headers).body
        if TEXT.encode() not in body or b'"error"' in body:
            raise SystemExit(f"count: {tool} was answered with {body.decode()}")

    def _post(self, message: dict, headers: dict = {}) -> http.client.HTTPResponse:
        self._id += 1
        number = {} if message["method"].startswith("notifications/") else {"id": self._id}
        self._connection.request("POST", self._path, json.dumps({"jsonrpc": "2.0"} | number | message), self._headers | headers)
        answer = self._connection.getresponse()
        answer.body = answer.read()
        return answer


def counts(command: list[str], calls: int, tool: str, modern: bool) -> list[int]:
    """Instructions, first-level instruction misses and last-level misses of a run with this many calls."""
    with tempfile.NamedTemporaryFile("r") as log:
        valgrind = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", *CACHES, "--cachegrind-out-file=/dev/null", f"--log-file={log.name}"]
        server = subprocess.Popen([*valgrind, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        url = next((found[0] for line in server.stdout if (found := re.search(r"http://\S+/mcp", line))), None)
        if url is None:
            raise SystemExit(f"count: {' '.join(command)} did not start")
        client = Client(url, modern)
        for _ in range(calls):
            client.call(tool)
        server.stdin.close()
        server.terminate()
        server.stdout.read()
        server.wait(120)
        text = log.read()
    found = [re.search(rf"{name}:\s+([\d,]+)", text) for name in ("I +refs", "I1 +misses", "LL misses")]
    if not all(found):
        raise SystemExit(f"count: cachegrind printed no counts:\n{text}")
    return [int(one[1].replace(",", "")) for one in found]


def main(shoal: str, loadtest: str) -> None:
    serve = [shoal, "serve", "--demo", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
    rows = [
        ("floor (axum)", [loadtest, "serve-floor", "--while-input"], "echo", False),
        ("rmcp, stateful", [loadtest, "serve-rmcp", "--while-input"], "echo", False),
        ("Shoal, legacy", serve, "echo", False),
        ("Shoal, modern", serve, "echo", True),
        ("Shoal, journaled", serve, "echo_once", False),
    ]
    print(f"{'a call of 32 bytes':<20} {'instructions':>14} {'L1i misses':>12} {'L2 misses':>12}")
    for name, command, tool, modern in rows:
        few, many = (counts(command, calls, tool, modern) for calls in (FEW, MANY))
        each = [(after - before) / (MANY - FEW) for before, after in zip(few, many)]
        print(f"{name:<20} {each[0]:>14,.0f} {each[1]:>12,.0f} {each[2]:>12,.0f}", flush=True)


main(*sys.argv[1:])
