"""The record of one odd server."""

from __future__ import annotations

import threading


class Log:
    """Records the methods that arrive."""

    def __init__(self, path: str | None = None) -> None:
        self._file = open(path, "a") if path else None
        self._lock = threading.Lock()

    def note(self, what: str) -> None:
        if self._file:
            with self._lock:
                print(what, file=self._file, flush=True)
