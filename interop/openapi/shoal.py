"""Shoal before a service with an OpenAPI document, as a client sees it."""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
PATIENCE = 60


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Shoal:
    """`shoal serve --openapi`; a context manager."""

    def __init__(self, program: str, document: Path | None, base_url: str, *flags: str) -> None:
        """Serves this document, or the server of the flags."""
        self.port, self.admin = free_port(), free_port()
        self.log = tempfile.TemporaryFile()
        served = ["--openapi", str(document), "--base-url", base_url] if document else []
        self.process = subprocess.Popen(
            [program, "serve", *served, "--listen", str(self.port), "--admin", str(self.admin), *flags],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
        )
        self.id = 0

    def __enter__(self) -> Shoal:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/readyz", timeout=5):
                    return self
            except (urllib.error.URLError, OSError) as error:
                if self.process.poll() is not None or time.monotonic() > until:
                    self.__exit__()
                    self.log.seek(0)
                    raise RuntimeError(f"not ready: {error}\n{self.log.read().decode()}") from None
            time.sleep(0.1)

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)

    def request(self, method: str, params: dict) -> dict:
        self.id += 1
        message = {"jsonrpc": "2.0", "id": self.id, "method": method, "params": {**params, "_meta": META}}
        headers = {
            "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method,
        }
        if "name" in params:
            headers["Mcp-Name"] = params["name"]
        asked = urllib.request.Request(f"http://127.0.0.1:{self.port}/mcp", json.dumps(message).encode(), headers)
        try:
            with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as refused:
            text = refused.read().decode()
        lines = [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")]
        answers = [json.loads(line) for line in lines or [text] if line.strip()]
        return next(answer for answer in answers if answer.get("id") == self.id)

    def tools(self) -> dict[str, dict]:
        found, cursor = {}, None
        while True:
            result = self.request("tools/list", {"cursor": cursor} if cursor else {})["result"]
            found |= {tool["name"]: tool for tool in result["tools"]}
            cursor = result.get("nextCursor")
            if not cursor:
                return found

    def call(self, name: str, arguments: dict) -> str | None:
        """Returns why the call failed; None if it succeeded."""
        answer = self.request("tools/call", {"name": name, "arguments": arguments})
        if "error" in answer:
            return json.dumps(answer["error"])
        return json.dumps(answer["result"]["content"]) if answer["result"].get("isError") else None
