"""The ledger, as the servers in Python write it."""

from __future__ import annotations

import os
import time

POLL = 0.01


def write_down(key: int) -> None:
    """A line of the file that LEDGER names: the key, and who runs it."""
    ledger = os.open(os.environ["LEDGER"], os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        os.write(ledger, f"{key} {os.getpid()} {os.getppid()}\n".encode())
    finally:
        os.close(ledger)


def run(verb: str, key: int, gated: bool) -> str:
    """A run of a tool: it goes on when there is the file that GATE names."""
    write_down(key)
    while gated and not os.path.exists(os.environ["GATE"]):
        time.sleep(POLL)
    return f"{verb} {key}"
