"""A test's knowledge of a server: its processes, and the lines that each has written."""

from __future__ import annotations

import os
import pathlib
import signal
from collections.abc import Iterator

import anyio

from harness import Failure

ARRIVAL_SECONDS = 20


class Known:
    """A server started by `known`, which gives each process a file in a directory."""

    def __init__(self, directory: pathlib.Path) -> None:
        self._directory = directory

    def times(self, line: str) -> int:
        """How often this line was written."""
        return sum(self._lines(record).count(line) for record in self._records())

    async def left(self, line: str) -> None:
        """Waits for this line."""
        with anyio.move_on_after(ARRIVAL_SECONDS):
            while not self.times(line):
                await anyio.sleep(0.02)
            return
        raise Failure(f"the server did not say {line!r} within {ARRIVAL_SECONDS} s")

    def kill(self, line: str | None = None) -> None:
        """Kills the processes that have written this line, or all."""
        killed = [self._kill(record) for record in self._records() if line is None or line in self._lines(record)]
        if not any(killed):
            raise Failure("there was nothing to kill")

    def _records(self) -> Iterator[pathlib.Path]:
        return self._directory.iterdir()

    def _lines(self, record: pathlib.Path) -> list[str]:
        return record.read_text().splitlines()

    def _kill(self, record: pathlib.Path) -> bool:
        try:
            # The process id may have been reused.
            environment = pathlib.Path(f"/proc/{record.name}/environ").read_bytes().split(b"\0")
            if f"INTEROP_RECORD={record}".encode() not in environment:
                return False
            os.kill(int(record.name), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            return False
        return True
