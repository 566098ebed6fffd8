"""The ledger, for the servers in Python."""

from __future__ import annotations

import os
import time

POLL = 0.01


def write_down(key: int) -> None:
    """Appends the key and the process to the file LEDGER."""
    ledger = os.open(os.environ["LEDGER"], os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        os.write(ledger, f"{key} {os.getpid()} {os.getppid()}\n".encode())
    finally:
        os.close(ledger)


def run(verb: str, key: int, gated: bool) -> str:
    """Runs a tool: records it, and waits for the file GATE if `gated`."""
    write_down(key)
    while gated and not os.path.exists(os.environ["GATE"]):
        time.sleep(POLL)
    return f"{verb} {key}"
