"""What the tests of the examples share: they start processes, call tools, and end everything."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

SECONDS = 60
"""How long the tests wait for anything."""
URL = "http://127.0.0.1:8080/mcp"
ADMIN = "http://127.0.0.1:8081"
T = TypeVar("T")


class Example:
    """A copy of an example's folder, and the processes that were started there."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        self._processes: list[subprocess.Popen[bytes]] = []
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("SHOAL_")}

    def start(self, name: str, *words: str, **variables: str) -> subprocess.Popen[bytes]:
        """Starts a process in the folder. Its output goes to NAME.log."""
        with (self.directory / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                words, cwd=self.directory, env=self._environment | variables,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )
        self._processes.append(process)
        return process

    def serve(self, name: str, *words: str, admin: str = ADMIN, **variables: str) -> subprocess.Popen[bytes]:
        """Starts `shoal serve`, and waits until it is ready."""
        process = self.start(name, "shoal", "serve", *words, **variables)
        self.until_ready(process, admin)
        return process

    def until_ready(self, process: subprocess.Popen[bytes], admin: str = ADMIN) -> None:
        self.until(process, lambda: get(f"{admin}/readyz")[0] == 200)

    def until(self, process: subprocess.Popen[bytes], arrived: Callable[[], T]) -> T:
        """Waits for something that the process brings about."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            expect(process.poll() is None, f"{process.args} has ended with {process.poll()}")
            with contextlib.suppress(OSError):
                if found := arrived():
                    return found
            time.sleep(0.05)
        raise AssertionError(f"{process.args}: waited for {SECONDS} s in vain")

    def run(self, *words: str, token: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end."""
        if token:
            variables["SHOAL_TOKEN"] = token
        return subprocess.run(
            words, cwd=self.directory, env=self._environment | variables, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )

    def shoal(self, *words: str, token: str = "") -> Any:
        """What a command of Shoal prints as JSON; `{"error": …}` if it fails."""
        done = self.run("shoal", *words, "--output", "json", token=token)
        expect(done.stdout.strip(), f"shoal {words} printed nothing, and said: {done.stderr}")
        return json.loads(done.stdout)

    def tools(self, *words: str, token: str = "") -> list[str]:
        """The names of the tools that a caller sees."""
        return sorted(tool["name"] for tool in self.shoal("tools", *words, token=token)["tools"])

    def call(self, tool: str, arguments: dict[str, Any] | None = None, *words: str, token: str = "") -> str:
        """Calls a tool. Returns its text, or the message of the error."""
        return text(self.shoal("call", tool, json.dumps(arguments or {}), *words, token=token))

    def stop(self) -> None:
        """Ends all processes, and what they have started."""
        for process in reversed(self._processes):
            process.terminate()
        end = time.monotonic() + 10
        for process in reversed(self._processes):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, end - time.monotonic()))
            # Servers that the process started are in its group.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._processes.clear()


@contextlib.contextmanager
def example(test: str) -> Iterator[Example]:
    """The example whose test this file is. If the test fails, the ends of all logs are printed."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        directory = pathlib.Path(place, "example")
        shutil.copytree(pathlib.Path(test).resolve().parent, directory)
        here = Example(directory)
        try:
            yield here
        except BaseException:
            for log in sorted(directory.glob("*.log")):
                print(f"== {log.name}", log.read_text(errors="replace")[-3000:], sep="\n", file=sys.stderr)
            raise
        finally:
            here.stop()
    print(f"passed in {time.monotonic() - began:.1f} s")


def expect(condition: object, what: object) -> None:
    if not condition:
        raise AssertionError(what)


def same(came: object, due: object) -> None:
    expect(came == due, f"{came!r} instead of {due!r}")


def step(what: str) -> None:
    """Names what has been shown."""
    print(f"ok {what}", flush=True)


def text(answer: dict[str, Any]) -> str:
    if "error" in answer:
        return answer["error"]["message"]
    return answer["content"][0]["text"]


def get(url: str, headers: dict[str, str] | None = None) -> tuple[int, Any, str]:
    """Status, headers and body of the answer to a GET."""
    return send(urllib.request.Request(url, headers=headers or {}))


def send(request: urllib.request.Request) -> tuple[int, Any, str]:
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers, refused.read().decode()


def post(method: str, params: dict[str, Any], token: str = "", url: str = URL) -> tuple[int, Any, Any]:
    """Status, headers and answer to a request of 2026-07-28."""
    status, headers, messages = exchange(method, params, token, url)
    return status, headers, messages[-1]


def exchange(method: str, params: dict[str, Any], token: str = "", url: str = URL) -> tuple[int, Any, list[Any]]:
    """Status, headers and all messages of the response to a request of 2026-07-28."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": "progress",
    }
    headers = {
        "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method,
    }
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    if token:
        headers["Authorization"] = f"Bearer {token}"
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    status, answered, body = send(urllib.request.Request(url, json.dumps(message).encode(), headers))
    events = [line.removeprefix("data: ") for line in body.splitlines() if line.startswith("data: {")]
    return status, answered, [json.loads(one) for one in events or [body or "null"]]


class Session:
    """A client of 2025-11-25 with a session. Each request has a connection of its own."""

    def __init__(self, url: str = URL) -> None:
        self.url = url
        self.headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        status, headers, body = send(self._request({"id": 0, "method": "initialize", "params": about}))
        expect(status == 200, f"{status}: {body}")
        self.headers |= {"Mcp-Session-Id": headers["Mcp-Session-Id"], "MCP-Protocol-Version": "2025-11-25"}
        status, _, body = send(self._request({"method": "notifications/initialized"}))
        expect(status == 202, f"{status}: {body}")

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """The text of a tool's result, or the message of the error."""
        *_, last = self.messages(tool, arguments)
        return text(last["result"] if "result" in last else last)

    def messages(self, tool: str, arguments: dict[str, Any]) -> Iterator[Any]:
        """The messages of a call as they come: its progress, and its answer."""
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": "progress"}}
        request = self._request({"id": 1, "method": "tools/call", "params": params})
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                if answer.headers.get_content_type() == "application/json":
                    yield json.load(answer)
                    return
                for line in answer:
                    if line.startswith(b"data: {"):
                        yield json.loads(line[6:])
        except urllib.error.HTTPError as refused:
            yield json.load(refused)

    def _request(self, message: dict[str, Any]) -> urllib.request.Request:
        return urllib.request.Request(self.url, json.dumps({"jsonrpc": "2.0", **message}).encode(), self.headers)


def port_is_open(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), 1):
        return True
