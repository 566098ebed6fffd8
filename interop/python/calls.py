"""Calls tools as it is told, with the official Python SDK: `python calls.py --url URL --era legacy|modern`.

Reads a JSON object for each request from standard input, and answers each in any order:

    {"id": 1, "list": true}                                 {"id": 1, "names": ["echo"]}
    {"id": 2, "tool": "echo", "arguments": {"text": "a"}}   {"id": 2, "text": "a", "failed": false}
                                                            or {"id": 2, "code": 50002, "message": "…"}

It says {"version": "…"} when it is connected, and leaves at the end of its input.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import anyio
from mcp import Client, MCPError

from client import MODES
from common import listed_tools, text_of


def say(**members: Any) -> None:
    print(json.dumps(members), flush=True)


async def answer(client: Client, request: dict[str, Any]) -> None:
    try:
        if "list" in request:
            say(id=request["id"], names=[tool.name for tool in await listed_tools(client)])
            return
        result = await client.call_tool(request["tool"], request["arguments"])
        say(id=request["id"], text=text_of(result), failed=bool(result.is_error))
    except MCPError as error:
        say(id=request["id"], code=error.code, message=error.message)
    except Exception as error:  # noqa: BLE001: whatever it is, whoever asked is told
        say(id=request["id"], code=None, message=f"{type(error).__name__}: {error}")


async def run(args: argparse.Namespace) -> None:
    async with Client(args.url, mode=MODES[args.era], read_timeout_seconds=60) as client:
        say(version=client.protocol_version)
        async with anyio.create_task_group() as group:
            async for line in anyio.wrap_file(sys.stdin):
                group.start_soon(answer, client, json.loads(line))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--era", choices=MODES, required=True)
    anyio.run(run, parser.parse_args())


if __name__ == "__main__":
    main()
