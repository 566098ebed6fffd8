"""Composes servers of all kinds behind two nodes as one, calls them by official clients, and kills a worker of each during calls.

    python run.py --shoal target/release/shoal --python PYTHON [--node --fastmcp PYTHON …]

Needs redis-server. Prints a line for each server, as every program of `interop/`.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import sys
import tempfile
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path

from callers import Caller
from cluster import SOON, Cluster, arrives, status, until
from loss import Loss
from parts import INTEROP, Part, parts

CHECK_SECONDS = 3 * SOON


async def connect(args: argparse.Namespace, cluster: Cluster, directory: Path) -> list[Caller]:
    """Connects clients of both SDKs and both eras, two to each edge."""
    python = [args.python, "-B", str(INTEROP / "python/calls.py")]
    typescript = ["node", str(INTEROP / "typescript/calls.js")]
    first, second = cluster.urls
    callers = []
    try:
        for sdk, words, era, url in (
            ("python", python, "legacy", first),
            ("typescript", typescript, "modern", first),
            ("typescript", typescript, "legacy", second),
            ("python", python, "modern", second),
        ):
            name = f"{sdk}, {era}"
            callers.append(await Caller.start(words, name, era, url, directory / f"client-{sdk}-{era}.log"))
    except BaseException:
        for caller in callers:
            caller.kill()
        raise
    return callers


async def listed(cluster: Cluster, callers: list[Caller], composed: list[Part]) -> str:
    """Clients of both eras see the same tools of one server through both edges."""
    lists = [sorted(await caller.names()) for caller in callers]
    for caller, names in zip(callers, lists, strict=True):
        assert names == lists[0], f"{caller.name} sees {names}, but {callers[0].name} sees {lists[0]}"
    missing = {f"{part.prefix}{name}" for part in composed for name in part.offers} - set(lists[0])
    assert not missing, f"{sorted(missing)} are not listed"
    for admin in cluster.admins:
        conflicts = status(admin)["conflicts"]
        assert not conflicts, f"conflicts: {conflicts}"
    return f"{len(lists[0])} tools of {len(composed)} servers"


async def kept(cluster: Cluster, callers: list[Caller]) -> str:
    """No client opened a second session, and all leave normally."""
    opened = sum(caller.era == "legacy" for caller in callers)
    created = cluster.sessions_created()
    assert created == opened, f"{opened} clients have opened {created} sessions"
    for caller in callers:
        await caller.leave()
    return f"{opened} sessions for {opened} clients"


async def check(name: str, run: Callable[[], Awaitable[str]]) -> bool:
    try:
        remark = await asyncio.wait_for(run(), CHECK_SECONDS)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".replace("\n", " ")[:600]
        print(f"FAIL {name}: {reason}", flush=True)
        traceback.print_exception(error, file=sys.stderr)
        return False
    print(f"ok {name}: {remark}", flush=True)
    return True


async def run(args: argparse.Namespace, cluster: Cluster, directory: Path) -> bool:
    composed = parts(args)
    ledger = directory / "ledger"
    ledger.touch()
    await asyncio.to_thread(cluster.start, "".join(part.table() for part in composed))
    workers = {}
    for part in composed:
        variables = {"LEDGER": str(ledger), "GATE": str(directory / f"gate-{part.pool}")}
        workers[part.pool] = await asyncio.to_thread(part.start, cluster, part, variables)
    for part in composed:
        await arrives(f"two workers of {part.name}", lambda part=part: cluster.ready(part.pool) == [2, 2])
    callers = await connect(args, cluster, directory)
    try:
        passed = await check("listed as one server", lambda: listed(cluster, callers, composed))
        keys = itertools.count(1)
        for part in composed:
            victim = workers[part.pool][0]
            loss = Loss(cluster, callers, part, victim, ledger, directory / f"gate-{part.pool}", keys)
            passed &= await check(part.name, loss.run)
        return await check("no client connects again", lambda: kept(cluster, callers)) and passed
    finally:
        for caller in callers:
            caller.kill()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shoal", required=True)
    parser.add_argument("--python", required=True, help="the Python that has the official SDK")
    parser.add_argument("--node", action="store_true", help="Node.js can run server-everything")
    parser.add_argument("--fastmcp", help="the Python that has FastMCP")
    parser.add_argument("--rmcp", help="the program `ledger` of interop/rmcp")
    parser.add_argument("--crate", help="the example `ledger` of crates/shoal")
    parser.add_argument("--python-worker", help="the Python that has shoal_worker")
    parser.add_argument("--go-worker", help="the program workers/go/internal/ledger")
    parser.add_argument("--keep-logs", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="shoal-composed-") as name:
        cluster = Cluster(os.path.abspath(args.shoal), Path(name))
        try:
            return 0 if asyncio.run(run(args, cluster, Path(name))) else 1
        finally:
            cluster.stop()
            if args.keep_logs:
                cluster.keep_logs(args.keep_logs)


if __name__ == "__main__":
    sys.exit(main())
