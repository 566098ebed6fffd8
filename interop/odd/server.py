"""An MCP server over stdio with one oddity: `python3 server.py ODDITY ERA [LOG]`.

LOG gets one line for each message that arrives. Each oddity is a class in oddities/: its name is the class's in kebab case, its docstring says
what is odd. The tests start thousands of these processes, so they import little.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

from log import Log
from oddities import ALL
from plain import Plain


def stdio(server: Plain, log: Log) -> None:
    lock = threading.Lock()

    def write(text: bytes) -> None:
        with lock:
            sys.stdout.buffer.write(text)
            sys.stdout.buffer.flush()

    def serve(message: dict[str, Any]) -> None:
        for reply in server.replies(message):
            write(server.line(reply))

    write(server.preamble)
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        message = json.loads(line)
        method = message.get("method", "response")
        log.note(method)
        if method in server.waits:
            threading.Thread(target=serve, args=(message,), daemon=True).start()
        else:
            serve(message)


if __name__ == "__main__":
    oddity, era, *path = sys.argv[1:]
    stdio(ALL[oddity](era), Log(*path))
