"""Runs the example workers, two of each, behind two edges with TLS, and uses them with the official Python client.

    python cluster.py --shoal target/debug/shoal --python workers/python/.venv/bin/python --go DIRECTORY

Needs redis-server and openssl. One line for each check, as every program of `interop/`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp import Client

SOON = 60.0
ERAS = {"legacy": "legacy", "modern": "auto"}


class Cluster:
    """Redis, two nodes, and the workers."""

    def __init__(self, shoal: str, directory: Path) -> None:
        self.shoal, self.directory = shoal, directory
        self.processes: list[subprocess.Popen[bytes]] = []
        self.urls: list[str] = []
        self.admins: list[str] = []
        self.workers: dict[str, list[subprocess.Popen[bytes]]] = {}
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("SHOAL_")}
        self.joins: list[str] = []

    def start(self) -> None:
        self._certificates()
        redis = free_port()
        self.spawn("redis", ["redis-server", "--port", str(redis), "--bind", "127.0.0.1", "--save", ""])
        until("Redis", lambda: socket.create_connection(("127.0.0.1", redis), 1).close() is None)
        config = self.directory / "shoal.toml"
        files = "\n".join(f"{key} = '{self.directory / name}'" for key, name in self._files().items())
        config.write_text(f"[cluster.tls]\n{files}\nname = 'shoal'\n[state_keys]\nkeys = [{{ value = '{'ab' * 32}' }}]\n")
        for name in ("a", "b"):
            cluster = f"127.0.0.1:{free_port()}"
            self.joins.append(cluster)
            words = [self.shoal, "serve", "--roles", "edge,session", "--store", f"redis://127.0.0.1:{redis}"]
            words += ["--cluster-listen", cluster, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
            out = self.spawn(f"node-{name}", [*words, "--config", str(config)])
            self.urls.append(until(f"node {name}", lambda out=out: said(out, "shoal: serving MCP on ")))
            self.admins.append(until(f"node {name}", lambda out=out: said(out, "shoal: admin on ")))

    def _files(self) -> dict[str, str]:
        return {"certificate": "tls.crt", "key": "tls.key", "authority": "ca.crt"}

    def _certificates(self) -> None:
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        (self.directory / "tls.ext").write_text("subjectAltName=DNS:shoal\nextendedKeyUsage=serverAuth,clientAuth\n")
        for words in (
            ["req", "-x509", *key, "-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.crt"],
            ["req", *key, "-subj", "/CN=shoal", "-keyout", "tls.key", "-out", "tls.csr"],
            "x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile tls.ext -out tls.crt".split(),
        ):
            subprocess.run(["openssl", *words], cwd=self.directory, check=True, capture_output=True)

    def spawn(self, name: str, words: list[str], environment: dict[str, str] | None = None) -> Path:
        out = self.directory / f"{name}.log"
        with out.open("wb") as log:
            process = subprocess.Popen(words, stdout=log, stderr=log, env=environment or self.environment)
        self.processes.append(process)
        return out

    def add_worker(self, name: str, words: list[str]) -> subprocess.Popen[bytes]:
        workers = self.workers.setdefault(name, [])
        tls = {f"SHOAL_TLS_{key.upper()}": str(self.directory / file) for key, file in self._files().items()}
        environment = self.environment | tls | {"SHOAL_JOIN": self.joins[0], "SHOAL_TLS_NAME": "shoal"}
        self.spawn(f"worker-{name}-{len(workers)}", words, environment)
        workers.append(self.processes[-1])
        return self.processes[-1]

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def said(out: Path, prefix: str) -> str | None:
    lines = (line for line in out.read_text().splitlines() if line.startswith(prefix))
    return next((line.removeprefix(prefix).split()[0] for line in lines), None)


def until(what: str, arrived: Callable[[], Any]) -> Any:
    """Retries until the time is over."""
    deadline = time.monotonic() + SOON
    while time.monotonic() < deadline:
        try:
            if found := arrived():
                return found
        except OSError:
            pass
        time.sleep(0.05)
    raise AssertionError(f"{what} did not come within {SOON} s")


def status(admin: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{admin.rstrip('/')}/status", timeout=10) as answer:
        return json.load(answer)


def ready_workers(admin: str, pool: str) -> int:
    pools = [one for one in status(admin)["pools"] if one["name"] == pool]
    return sum(worker["ready"] and worker.get("reachable") is not False for one in pools for worker in one["workers"])


def text(result: types.CallToolResult) -> str:
    return result.content[0].text


def expect(holds: bool, otherwise: Any) -> None:
    if not holds:
        raise AssertionError(str(otherwise))


async def on_elicit(_context: Any, _params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"guests": 4, "date": "2026-08-01"})


def client(url: str, era: str) -> Client:
    return Client(url, mode=ERAS[era], read_timeout_seconds=SOON, elicitation_callback=on_elicit)


PREFIXES = {"python": "", "go": "go_"}


async def uses(cluster: Cluster, language: str, era: str) -> None:
    """Uses the tools of one language at both edges."""
    prefix = PREFIXES[language]
    for url in cluster.urls:
        async with client(url, era) as connected:
            listed = {tool.name for tool in (await connected.list_tools()).tools}
            everything = {f"{PREFIXES[one]}{name}" for one in cluster.workers for name in ("reverse", "work", "book")}
            expect(everything <= listed, f"{sorted(everything - listed)} are not listed")
            result = await connected.call_tool(f"{prefix}reverse", {"text": "abc ✓"})
            expect(text(result) == "✓ cba", result)
            result = await connected.call_tool(f"{prefix}divide", {"a": 1, "b": 0})
            expect(bool(result.is_error) and "zero" in text(result), result)
            long = await connected.call_tool(f"{prefix}reverse", {"text": "ab" * 200_000})
            expect(text(long) == "ba" * 200_000, len(text(long)))
            seen: list[float] = []

            async def on_progress(progress: float, _total: float | None, _message: str | None) -> None:
                seen.append(progress)

            arguments = {"steps": 3, "seconds": 0.05}
            result = await connected.call_tool(f"{prefix}work", arguments, progress_callback=on_progress)
            expect(text(result).startswith("worked 3 steps"), result)
            expect(seen == [1, 2, 3], f"progress {seen}")
            result = await connected.call_tool(f"{prefix}book", {"restaurant": "Fuji"})
            expect(text(result) == "booked Fuji for 4 on 2026-08-01", result)
            if era == "legacy":
                counts = [text(await connected.call_tool(f"{prefix}visits", {})) for _ in range(4)]
                expect(counts == ["1", "2", "3", "4"], f"visits {counts}")


async def survives(cluster: Cluster, language: str, words: list[str]) -> None:
    """Calls that may be repeated succeed while one of two workers is killed."""
    prefix, pool = PREFIXES[language], language
    async with client(cluster.urls[1], "legacy") as connected:
        await connected.call_tool(f"{prefix}visits", {})
        with anyio.fail_after(SOON):
            async with anyio.create_task_group() as group:

                killed = False

                async def call(number: int) -> None:
                    left = 25
                    while left > 0:
                        result = await connected.call_tool(f"{prefix}reverse", {"text": f"{number}!"})
                        expect(text(result) == f"{number}!"[::-1], result)
                        left -= killed

                for number in range(8):
                    group.start_soon(call, number)
                await anyio.sleep(0.2)
                cluster.workers[language][0].kill()
                killed = True
        # A call that must not be repeated, sent to a worker that has just died, has an unknown outcome.
        lost = lambda: all(ready_workers(admin, pool) == 1 for admin in cluster.admins)
        await anyio.to_thread.run_sync(lambda: until("the loss", lost))
        result = await connected.call_tool(f"{prefix}visits", {})
        expect(text(result) == "2", f"the session's state after the loss: {text(result)}")
    cluster.add_worker(language, words)
    await anyio.to_thread.run_sync(lambda: until("the worker anew", lambda: ready_workers(cluster.admins[0], pool) == 2))


async def drains(cluster: Cluster, language: str) -> None:
    """A stopped worker finishes its call."""
    prefix = PREFIXES[language]
    leaving = cluster.workers[language][1]
    async with client(cluster.urls[0], "modern") as connected:
        async with anyio.create_task_group() as group:

            async def call() -> None:
                result = await connected.call_tool(f"{prefix}work", {"steps": 20, "seconds": 0.1})
                expect(text(result).startswith("worked 20 steps"), result)

            for _ in range(6):
                group.start_soon(call)
            running = lambda: sum(  # noqa: E731
                worker["running"]
                for pool in status(cluster.admins[0])["pools"]
                if pool["name"] == language
                for worker in pool["workers"]
            )
            await anyio.to_thread.run_sync(lambda: until("running calls", lambda: running() >= 6))
            leaving.send_signal(signal.SIGTERM)
    code = await anyio.to_thread.run_sync(lambda: leaving.wait(SOON))
    expect(code == 0, f"exit code {code}")


async def check(name: str, run: Callable[[], Awaitable[None]]) -> bool:
    try:
        with anyio.fail_after(3 * SOON):
            await run()
    except BaseException as error:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        reason = f"{type(error).__name__}: {error}".replace("\n", " ")[:500]
        print(f"FAIL {name}: {reason}", flush=True)
        traceback.print_exception(error, file=sys.stderr)
        return False
    print(f"ok {name}", flush=True)
    return True


async def run(cluster: Cluster, workers: dict[str, tuple[list[str], list[str]]]) -> int:
    for language, (tools, booking) in workers.items():
        for _ in range(2):
            cluster.add_worker(language, tools)
            cluster.add_worker(f"{language}-booking", booking)
    for admin in cluster.admins:
        for name in list(cluster.workers):
            until(f"two workers of {name} at {admin}", lambda: ready_workers(admin, name) == 2)
    for booking in [name for name in cluster.workers if name.endswith("-booking")]:
        del cluster.workers[booking]
    passed = True
    for language, (tools, _) in workers.items():
        for era in ERAS:
            passed &= await check(f"{language}_{era}", lambda: uses(cluster, language, era))
        passed &= await check(f"{language}_loss", lambda: survives(cluster, language, tools))
        passed &= await check(f"{language}_drain", lambda: drains(cluster, language))
    return 0 if passed else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shoal", required=True)
    parser.add_argument("--python", help="the Python that has shoal_worker")
    parser.add_argument("--go", help="the directory of the Go examples' programs")
    parser.add_argument("--keep-logs", type=Path)
    args = parser.parse_args()
    examples = Path(__file__).parent.parent / "python" / "examples"
    workers: dict[str, tuple[list[str], list[str]]] = {}
    if args.python:
        workers["python"] = ([args.python, str(examples / "tools.py")], [args.python, str(examples / "booking.py")])
    if args.go:
        workers["go"] = ([f"{args.go}/tools"], [f"{args.go}/booking"])
    with tempfile.TemporaryDirectory(prefix="shoal-workers-") as directory:
        cluster = Cluster(args.shoal, Path(directory))
        try:
            cluster.start()
            return anyio.run(run, cluster, workers)
        finally:
            cluster.stop()
            if args.keep_logs:
                shutil.copytree(directory, args.keep_logs, dirs_exist_ok=True)


if __name__ == "__main__":
    sys.exit(main())
