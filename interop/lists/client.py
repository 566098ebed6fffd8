"""A client of either era that sends exactly what a check says. Needs no packages."""

from __future__ import annotations

import json
import queue
import threading
import urllib.error
import urllib.request
from itertools import count
from typing import Any

Message = dict[str, Any]
SOON = 20.0


class Failed(Exception):
    """A JSON-RPC error."""

    def __init__(self, status: int, error: Message) -> None:
        super().__init__(f"{status}: {error}")
        self.code, self.message = error.get("code"), error.get("message", "")


class Client:
    def __init__(self, url: str, token: str | None, modern: bool) -> None:
        self.url, self.token, self.modern = url, token, modern
        self.session: str | None = None
        self.told: queue.Queue[str] = queue.Queue()
        self.honoured: Message = {}
        self._numbers = count(1)

    @classmethod
    def legacy(cls, url: str, token: str | None = None) -> Client:
        client = cls(url, token, False)
        info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "check", "version": "1"}}
        client.ask("initialize", info)
        client._post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return client

    def at(self, url: str) -> Client:
        """The same session at another edge."""
        other = Client(url, self.token, self.modern)
        other.session = self.session
        return other

    def ask(self, method: str, params: Message | None = None) -> Message:
        params = dict(params or {})
        if self.modern:
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "check", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        message = {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": params}
        status, text, headers = self._post(message)
        self.session = headers.get("Mcp-Session-Id") or self.session
        answer = json.loads(text)
        if "result" not in answer:
            raise Failed(status, answer.get("error") or answer)
        return answer["result"]

    def names(self, method: str = "tools/list") -> list[str]:
        result = self.ask(method)
        member = {"tools/list": "tools", "resources/list": "resources", "prompts/list": "prompts"}[method]
        self.scope = result.get("cacheScope")
        return [item["uri" if member == "resources" else "name"] for item in result[member]]

    def call(self, tool: str) -> str:
        return self.ask("tools/call", {"name": tool, "arguments": {}})["content"][0]["text"]

    def _headers(self, message: Message) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        if self.modern:
            headers |= {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": message["method"]}
            params = message["params"]
            if (name := params.get("name") or params.get("uri")) is not None:
                headers["Mcp-Name"] = name
        elif self.session:
            headers["MCP-Protocol-Version"] = "2025-11-25"
        return headers

    def _post(self, message: Message) -> tuple[int, str, Any]:
        request = urllib.request.Request(self.url, json.dumps(message).encode(), self._headers(message))
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read().decode()
                if answer.headers.get_content_type() == "text/event-stream":
                    # The answer is the last message of its stream.
                    text = [line[6:] for line in text.splitlines() if line.startswith("data: {")][-1]
                return answer.status, text, answer.headers
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode(), refused.headers

    def listen(self, *uris: str) -> None:
        """Records the methods of unsolicited messages in `told` from now on. A modern client also subscribes to these
        resources.
        """
        message: Message = {"method": "subscriptions/listen", "params": {}}
        if self.modern:
            wants: Message = {"toolsListChanged": True, "resourcesListChanged": True, "promptsListChanged": True}
            if uris:
                wants["resourceSubscriptions"] = list(uris)
            meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
            meta |= {"io.modelcontextprotocol/clientCapabilities": {}}
            body = {"jsonrpc": "2.0", "id": 9999, **message, "params": {"notifications": wants, "_meta": meta}}
            request = urllib.request.Request(self.url, json.dumps(body).encode(), self._headers(body))
        else:
            request = urllib.request.Request(self.url, None, self._headers(message) | {"Accept": "text/event-stream"})
        stream = urllib.request.urlopen(request, timeout=600)
        begun = threading.Event()

        def read() -> None:
            for line in stream:
                message = json.loads(line[6:]) if line.startswith(b"data: {") else {}
                if message.get("method") == "notifications/subscriptions/acknowledged":
                    self.honoured = message["params"]["notifications"]
                begun.set()
                if method := message.get("method"):
                    self.told.put(method)

        threading.Thread(target=read, daemon=True).start()
        assert begun.wait(SOON), "the stream does not begin"

    def hears(self, method: str) -> list[str]:
        """Waits for this message. Returns the earlier ones."""
        before = []
        while (told := self.told.get(timeout=SOON)) != method:
            before.append(told)
        return before
