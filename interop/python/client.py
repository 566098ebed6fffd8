"""Drives a server with the official Python SDK and reports what works.

By hand: `python client.py --url http://127.0.0.1:PORT/mcp --era modern`.
"""

from __future__ import annotations

import argparse
import logging
import pathlib
import sys
import warnings

import anyio
from mcp import Client, MCPDeprecationWarning, StdioServerParameters
from mcp.client.sse import sse_client

from asking_checks import AskingChecks
from common import Checks
from demo import DemoChecks
from everything import EverythingChecks
from filesystem import FilesystemChecks
from harness import Runner
from peer import ROOTS, Peer
from task_checks import TaskChecks
from tasks import TasksExtension

CHECKS: dict[str, type[Checks]] = {
    "asking": AskingChecks,
    "demo": DemoChecks,
    "everything": EverythingChecks,
    "filesystem": FilesystemChecks,
    "tasks": TaskChecks,
}
# `auto` begins with server/discover; `connect` fails if it fell back to initialize.
MODES = {"legacy": "legacy", "modern": "auto"}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="where the server is; HTTP+SSE if it ends in /sse")
    parser.add_argument("--era", choices=MODES, required=True)
    parser.add_argument("--expect", choices=CHECKS, default="demo")
    parser.add_argument("--dir", type=pathlib.Path, help="what server-filesystem serves")
    parser.add_argument(
        "--own-process", action="store_true", help="server-everything serves nobody else"
    )
    parser.add_argument("--known", type=pathlib.Path, help="the directory of the server that `known` has started")
    parser.add_argument("--only", action="append", default=[], help="run this check alone")
    parser.add_argument(
        "--cannot", action="append", default=[], metavar="NAME|SEEN|WHY", help="this check must fail, with what is SEEN"
    )
    parser.add_argument("command", nargs="*", help="a server to talk to over stdio")
    args = parser.parse_args()
    if bool(args.url) == bool(args.command):
        parser.error("give either --url or a command")
    if args.expect in ("asking", "everything") and not args.known:
        parser.error(f"--expect {args.expect} needs --known")
    if args.expect == "filesystem" and not args.dir:
        parser.error("--expect filesystem needs --dir")
    if args.expect == "tasks" and not (args.url and args.era == "modern"):
        parser.error("--expect tasks needs --url and --era modern")
    return args


async def run(args: argparse.Namespace) -> int:
    roots = [args.dir.resolve().as_uri()] if args.dir else ROOTS
    peer = Peer(roots)
    if args.command:
        server = StdioServerParameters(command=args.command[0], args=args.command[1:])
    elif args.url.rstrip("/").endswith("/sse"):
        server = sse_client(args.url)
    else:
        server = args.url
    runner = Runner(args.only, args.cannot)
    client = Client(
        server,
        mode=MODES[args.era],
        read_timeout_seconds=60,
        elicitation_callback=peer.on_elicit,
        sampling_callback=peer.on_sample,
        list_roots_callback=peer.on_list_roots,
        logging_callback=peer.on_log,
        message_handler=peer.on_message,
        # Only here, because a client that accepts tasks gets them from other servers too.
        extensions=[TasksExtension()] if args.expect == "tasks" else None,
        log_level="info",
    )
    closing = False
    try:
        async with client:
            checks = CHECKS[args.expect](client, peer, args)
            for name, check in checks.all():
                passed = await runner.run(name, check)
                if name == "connect" and not passed:
                    break
            closing = True
        await runner.run("close", anyio.lowlevel.checkpoint)
    except Exception as error:
        runner.fail("close" if closing else "connect", error)
    return 1 if runner.failed else 0


def main() -> None:
    # Logging, roots and sampling are deprecated but are what is to be tested.
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    sys.exit(anyio.run(run, arguments()))


if __name__ == "__main__":
    main()
