"""Runs named checks in order and prints a line for each."""

from __future__ import annotations

import os
import traceback
from collections.abc import Awaitable, Callable

import anyio

CHECK_SECONDS = 30
"""How long one check may take before it counts as failed."""


class Skip(Exception):
    """The SDK or the era does not support the check."""


class Failure(Exception):
    """The server behaved wrongly."""


Check = Callable[[], Awaitable[None]]


def expect(condition: object, message: str) -> None:
    """Fails the check unless `condition` holds."""
    if not condition:
        raise Failure(message)


def expect_equal(actual: object, expected: object, what: str) -> None:
    """Fails the check unless both are equal."""
    expect(actual == expected, f"{what}: expected {expected!r}, got {actual!r}")


class Runner:
    """Counts the checks' results."""

    def __init__(self, only: list[str], cannot: list[str]) -> None:
        self._only = only
        self._cannot = {name: (seen, why) for name, seen, why in (each.split("|") for each in cannot)}
        self.failed = 0

    async def run(self, name: str, check: Check) -> bool:
        """Runs one check; false if it failed."""
        if self._only and name not in self._only:
            return True
        try:
            with anyio.fail_after(CHECK_SECONDS):
                await check()
        except Skip as skip:
            print(f"skip {name}: {skip}", flush=True)
        except Exception as error:
            if name in self._cannot and self._cannot[name][0] in _told(error):
                print(f"skip {name}: {self._why(name)}", flush=True)
                return True
            self.fail(name, error)
            return False
        else:
            if name in self._cannot:
                self.fail(name, Failure(f"it works, although: {self._why(name)}"))
                return False
            print(f"ok {name}", flush=True)
        return True

    def _why(self, name: str) -> str:
        seen, why = self._cannot[name]
        return f'{why} (tried; seen: "{seen}")'

    def fail(self, name: str, error: BaseException) -> None:
        """Prints that `name` failed, and where, if INTEROP_TRACE is set."""
        self.failed += 1
        print(f"FAIL {name}: {_told(error).replace(chr(10), ' | ')}", flush=True)
        if os.environ.get("INTEROP_TRACE"):
            traceback.print_exception(error)


def _told(error: BaseException) -> str:
    """The text of an error."""
    if isinstance(error, TimeoutError) and not str(error):
        return f"no answer within {CHECK_SECONDS} s"
    return f"{type(error).__name__}: {_innermost(error)}"


def _innermost(error: BaseException) -> str:
    """The first error inside a group, which the group's own text omits."""
    while inner := getattr(error, "exceptions", None):
        error = inner[0]
    return f"{error}" or type(error).__name__
