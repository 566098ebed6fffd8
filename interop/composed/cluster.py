"""Redis, two nodes that are edge and session node, and all other processes."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

SOON = 60.0
POLL = 0.02


class Cluster:
    """Every process has its own session, so that its children end with it."""

    def __init__(self, shoal: str, directory: Path) -> None:
        self.shoal, self.directory = shoal, directory
        self.joins: list[str] = []
        self.urls: list[str] = []
        self.admins: list[str] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("SHOAL_")}

    def start(self, pools: str) -> None:
        """Starts the nodes with these tables of pools."""
        redis = free_port()
        self.spawn("redis", ["redis-server", "--port", str(redis), "--bind", "127.0.0.1", "--save", ""])
        until("Redis", lambda: socket.create_connection(("127.0.0.1", redis), 1).close() is None)
        config = self.write("nodes", f"{pools}\n[state_keys]\nkeys = [{{ value = '{'ab' * 32}' }}]\n")
        for name in ("a", "b"):
            self.joins.append(f"127.0.0.1:{free_port()}")
            words = ["--roles", "edge,session", "--store", f"redis://127.0.0.1:{redis}", "--listen", "127.0.0.1:0"]
            out = self._serve(f"node-{name}", [*words, "--cluster-listen", self.joins[-1]], config)[1]
            self.urls.append(until(f"node {name}", lambda out=out: said(out, "shoal: serving MCP on ")))
            self.admins.append(until(f"node {name}", lambda out=out: said(out, "shoal: admin on ")))

    def worker(self, name: str, pools: str, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """A process of Shoal that runs these pools."""
        config = self.write(name, pools)
        return self._serve(name, ["--roles", "worker", "--join", self.joins[0]], config, environment)[0]

    def program(self, name: str, words: list[str], pools: str, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """A program that embeds Shoal, configured by a file, as in the chart."""
        join = f'[node]\nroles = ["worker"]\n[cluster]\njoin = ["{self.joins[0]}"]\n[server]\nadmin = "127.0.0.1:0"\n'
        variables = dict(environment) | {"SHOAL_CONFIG": str(self.write(name, join + pools))}
        return self.spawn(name, [*words, "serve"], variables)

    def _serve(
        self, name: str, words: list[str], config: Path, environment: Mapping[str, str] | None = None
    ) -> tuple[subprocess.Popen[bytes], Path]:
        command = [self.shoal, "serve", *words, "--admin", "127.0.0.1:0", "--config", str(config)]
        return self.spawn(name, command, environment), self.directory / f"{name}.log"

    def write(self, name: str, text: str) -> Path:
        path = self.directory / f"{name}.toml"
        path.write_text(text)
        return path

    def spawn(
        self, name: str, words: list[str], environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        with (self.directory / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment | dict(environment or {}),
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def stop(self) -> None:
        """Stops all processes, the last one first. Kills those that do not stop, with their children."""
        for process in reversed(self._processes):
            process.terminate()
        deadline = time.monotonic() + 10
        for process in reversed(self._processes):
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass
            # Children may survive a killed process.
            for pid in session_members(process.pid):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            process.wait()

    def keep_logs(self, directory: Path) -> None:
        shutil.copytree(self.directory, directory, dirs_exist_ok=True)

    def ready(self, pool: str) -> list[int]:
        """The number of the pool's workers that each node can send calls to."""
        return [_ready(status(admin), pool) for admin in self.admins]

    def sessions_created(self) -> int:
        """The number of sessions opened at all nodes."""
        texts = (fetch(f"{admin.rstrip('/')}/metrics").decode() for admin in self.admins)
        lines = (line for text in texts for line in text.splitlines())
        return sum(int(float(line.split()[-1])) for line in lines if line.startswith("shoal_session_created_total"))


def _ready(status: dict[str, Any], pool: str) -> int:
    pools = [one for one in status["pools"] if one["name"] == pool]
    return sum(worker["ready"] and worker.get("reachable") is not False for one in pools for worker in one["workers"])


def fetch(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read()


def status(admin: str) -> dict[str, Any]:
    return json.loads(fetch(f"{admin.rstrip('/')}/status"))


def said(out: Path, prefix: str) -> str | None:
    lines = (line for line in out.read_text().splitlines() if line.startswith(prefix))
    return next((line.removeprefix(prefix).split()[0] for line in lines), None)


def session_members(leader: int) -> list[int]:
    """The processes of the session of `leader`, including itself."""
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # PID (NAME) STATE PARENT GROUP SESSION …; a name may contain spaces and brackets.
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            members.append(int(stat.parent.name))
    return members


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def until(what: str, arrived: Callable[[], Any]) -> Any:
    """Retries until the time is over."""
    deadline = time.monotonic() + SOON
    while time.monotonic() < deadline:
        try:
            if found := arrived():
                return found
        except OSError:
            pass
        time.sleep(POLL)
    raise AssertionError(f"{what} did not come within {SOON} s")


async def arrives(what: str, arrived: Callable[[], Any]) -> Any:
    """`until`, while other tasks continue."""
    deadline = time.monotonic() + SOON
    while time.monotonic() < deadline:
        try:
            if found := await asyncio.to_thread(arrived):
                return found
        except OSError:
            pass
        await asyncio.sleep(POLL)
    raise AssertionError(f"{what} did not come within {SOON} s")
