"""The composed servers: how to start each with two workers, and the names of its tools.

Each server has one tool that may be repeated and one that must not. Each run writes its key to the ledger, and waits
for the gate if its arguments say so.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster import Cluster, fetch, free_port, until

HERE = Path(__file__).parent
SERVERS = HERE / "servers"
INTEROP = HERE.parent

Call = tuple[str, dict[str, Any], str]
"""A tool, its arguments, and a part of its result's text."""


@dataclass(frozen=True)
class Part:
    """One of the servers."""

    name: str
    pool: str
    start: Callable[[Cluster, Part, dict[str, str]], list[subprocess.Popen[bytes]]]
    """Starts both workers, with these variables; what can be killed of each."""
    safe: Callable[[int, bool], Call]
    unsafe: Callable[[int, bool], Call]
    prefix: str = ""
    settings: str = ""
    """Lines of the pool's table."""
    offers: frozenset[str] = field(default_factory=lambda: frozenset({"look", "book"}))

    def table(self, backend: str = '"handler"') -> str:
        return f'[pools.{self.pool}]\nbackend = {backend}\nprefix = "{self.prefix}"\n{self.settings}\n'


def look(prefix: str) -> Callable[[int, bool], Call]:
    return lambda key, gated: (f"{prefix}look", {"key": key, "gated": gated}, f"looked {key}")


def book(prefix: str) -> Callable[[int, bool], Call]:
    return lambda key, gated: (f"{prefix}book", {"key": key, "gated": gated}, f"booked {key}")


def ledger_part(name: str, pool: str, start: Callable[..., Any]) -> Part:
    """A server with the tools `look` and `book`. Others have the same tools; the pool's prefix distinguishes them."""
    prefix = f"{pool}_"
    return Part(name, pool, start, look(prefix), book(prefix), prefix)


def over_stdio(command: list[str]) -> Callable[..., Any]:
    """Two processes of Shoal that run the command."""

    def start(cluster: Cluster, part: Part, variables: dict[str, str]) -> list[subprocess.Popen[bytes]]:
        backend = f"{{ stdio = {{ command = {json.dumps(command[0])}, args = {json.dumps(command[1:])}, "
        backend += 'inherit = ["LEDGER", "GATE"], isolation = "shared" } }'
        return [cluster.worker(f"{part.pool}-{number}", part.table(backend), variables) for number in range(2)]

    return start


def behind_urls(command: list[str], backend: str, path: str = "") -> Callable[..., Any]:
    """Two servers, with their ports instead of PORT in the command, and a process of Shoal that calls them."""

    def start(cluster: Cluster, part: Part, variables: dict[str, str]) -> list[subprocess.Popen[bytes]]:
        servers, urls = [], []
        for number in range(2):
            port = str(free_port())
            urls.append(f"http://127.0.0.1:{port}{path}")
            words = [port if word == "PORT" else word for word in command]
            servers.append(cluster.spawn(f"{part.pool}-{number}", words, variables | {"PORT": port}))
        for url in urls:
            until(url, lambda url=url: answers(url))
        cluster.worker(part.pool, part.table(backend.replace("URLS", json.dumps(urls))), {})
        return servers

    return start


def answers(url: str) -> bool:
    """Whether the server answers, with any status."""
    try:
        fetch(url)
    except OSError as error:
        return hasattr(error, "code")
    return True


def joins(command: list[str]) -> Callable[..., Any]:
    """Two workers that join the node in SHOAL_JOIN."""

    def start(cluster: Cluster, part: Part, variables: dict[str, str]) -> list[subprocess.Popen[bytes]]:
        environment = variables | {"SHOAL_JOIN": cluster.joins[0]}
        return [cluster.spawn(f"{part.pool}-{number}", command, environment) for number in range(2)]

    return start


def by_the_crate(program: str) -> Callable[..., Any]:
    """Two workers of one program: one embedded in it, which joins by itself, and one that is the whole program."""

    def start(cluster: Cluster, part: Part, variables: dict[str, str]) -> list[subprocess.Popen[bytes]]:
        within = cluster.spawn(f"{part.pool}-0", [program, cluster.joins[0]], variables)
        return [within, cluster.program(f"{part.pool}-1", [program], part.table(), variables)]

    return start


EVERYTHING = [
    "node",
    "--import",
    str(INTEROP / "servers/ledger.js"),
    str(INTEROP / "servers/node_modules/@modelcontextprotocol/server-everything/dist/index.js"),
]
# The server marks all its tools as safe to repeat.
EVERYTHING_SETTINGS = "tools.hints.echo = { read_only = false, idempotent = false }"
EVERYTHING_OFFERS = frozenset({"echo", "get-sum", "get-structured-content", "trigger-long-running-operation"})


def everything(name: str, pool: str, prefix: str, settings: str, start: Callable[..., Any]) -> Part:
    def safe(key: int, gated: bool) -> Call:
        return f"{prefix}get-sum", {"a": key, "b": int(gated)}, f"sum of {key} and {int(gated)} "

    def unsafe(key: int, gated: bool) -> Call:
        message = f"gated {key}" if gated else str(key)
        return f"{prefix}echo", {"message": message}, f"Echo: {message}"

    return Part(name, pool, start, safe, unsafe, prefix, EVERYTHING_SETTINGS + settings, EVERYTHING_OFFERS)


def petstore(python: str) -> Part:
    backend = f"{{ openapi = {{ document = {json.dumps(str(SERVERS / 'petstore.json'))}, base_urls = URLS }} }}"
    start = behind_urls([python, "-B", str(SERVERS / "petstore.py"), "PORT"], backend, "/v1")
    return Part(
        "Petstore by its OpenAPI document",
        "pets",
        start,
        lambda key, gated: ("pets_getPet", {"id": key, "gated": gated}, f"looked {key}"),
        lambda key, gated: ("pets_addPet", {"id": key, "gated": gated}, f"booked {key}"),
        "pets_",
        offers=frozenset({"getPet", "addPet"}),
    )


def parts(args: argparse.Namespace) -> list[Part]:
    """All servers whose programs are available."""
    urls = "{ http = { urls = URLS } }"
    found = []
    if args.node:
        found.append(everything("server-everything over stdio", "everything", "", "", over_stdio([*EVERYTHING, "stdio"])))
        # The server lets clients resume streams, but loses them with its process, so long retries are useless.
        backend = '{ http = { urls = URLS, resume_for = "1s" } }'
        start = behind_urls([*EVERYTHING, "streamableHttp"], backend, "/mcp")
        # Both have the same resources, so one is enough.
        settings = '\nresources.deny = ["*"]'
        found.append(everything("server-everything over HTTP", "remote", "remote_", settings, start))
    if args.fastmcp:
        start = behind_urls([args.fastmcp, "-B", str(SERVERS / "fast.py"), "PORT"], urls, "/mcp")
        found.append(ledger_part("FastMCP over HTTP", "fast", start))
    if args.rmcp:
        found.append(ledger_part("rmcp over stdio", "rust", over_stdio([args.rmcp])))
    if args.crate:
        found.append(ledger_part("rmcp as a worker, by shoal-mcp", "crate", by_the_crate(args.crate)))
    if args.python_worker:
        start = joins([args.python_worker, "-B", str(SERVERS / "worker.py")])
        found.append(ledger_part("worker in Python", "python", start))
    if args.go_worker:
        found.append(ledger_part("worker in Go", "go", joins([args.go_worker])))
    found.append(petstore(args.python))
    return found
