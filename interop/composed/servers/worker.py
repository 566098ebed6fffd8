"""A worker in Python that writes each run of its tools in a ledger. SHOAL_JOIN names a node of its cluster."""

from __future__ import annotations

import ledger
from shoal_worker import Worker

worker = Worker("python")


@worker.tool(read_only=True)
def look(key: int, gated: bool = False) -> str:
    """Is safe to repeat."""
    return ledger.run("looked", key, gated)


@worker.tool()
def book(key: int, gated: bool = False) -> str:
    """Must not run twice."""
    return ledger.run("booked", key, gated)


if __name__ == "__main__":
    worker.run()
