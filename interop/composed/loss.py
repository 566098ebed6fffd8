"""Kills one of two workers during calls, and checks how each call ends."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from callers import Answer, Caller
from cluster import Cluster, arrives
from parts import Part

OUTCOME_UNKNOWN = 50002
NOT_EXECUTED = {50300, 50301}
ROUNDS = 20
"""How often calls are added until the victim has some of each kind."""
WANTED = 2
AFTERWARDS = 3
STREAMED = 10
"""Short calls of each client after the kill."""


@dataclass
class Made:
    """A call of a client."""

    key: int
    safe: bool
    caller: str
    expected: str
    answer: asyncio.Task[Answer]


class Loss:
    """The effects of a loss on one server's calls."""

    def __init__(
        self,
        cluster: Cluster,
        callers: list[Caller],
        part: Part,
        victim: subprocess.Popen[bytes],
        ledger: Path,
        gate: Path,
        keys: itertools.count[int],
    ) -> None:
        self.cluster, self.callers, self.part, self.victim = cluster, callers, part, victim
        self._ledger, self._gate, self._keys = ledger, gate, keys
        self._made: list[Made] = []

    async def run(self) -> str:
        try:
            return await self._run()
        finally:
            self._gate.touch()
            for made in self._made:
                made.answer.cancel()

    async def _run(self) -> str:
        held = await self._hold()
        here = [made for made in held if self._by_victim(made.key)]
        away = [made for made in held if not self._by_victim(made.key)]
        killed = asyncio.Event()
        streams = [asyncio.create_task(self._stream(caller, killed)) for caller in self.callers]
        try:
            await arrives("short calls", lambda: len(self._made) > len(held) + 4 * len(self.callers))
            self.victim.kill()
            killed.set()
            await asyncio.gather(*streams)
        finally:
            for stream in streams:
                stream.cancel()
        # The gate is still closed, so a call that ends now ends because of the loss. Calls that run elsewhere continue.
        for made in here:
            ran_again = lambda made=made: len(self._runs(made.key)) > 1  # noqa: E731
            if made.safe:
                await arrives(f"another run of {made.key}", ran_again)
                continue
            await arrives(f"the end of {made.key}", lambda made=made: made.answer.done() or ran_again())
            assert not ran_again(), f"{made.caller}: {made.key} ran twice"
            answer = made.answer.result()
            assert answer.code == OUTCOME_UNKNOWN, f"{made.caller}: a call that was lost ended with {answer}"
        for made in away:
            assert not made.answer.done(), f"{made.caller}: a call of the other worker ended with {made.answer.result()}"
        self._gate.touch()
        for made in held:
            if made.safe or made in away:
                self._expect_result(made, await made.answer)
        await arrives("the loss", lambda: self.cluster.ready(self.part.pool) == [1, 1])
        for made in [self._call(caller, safe) for caller in self.callers for safe in [True, False] * AFTERWARDS]:
            self._expect_result(made, await made.answer)
        return self._account(here)

    async def _hold(self) -> list[Made]:
        """Makes calls of each kind and client that wait at the gate, until the victim has enough of each kind."""
        held: list[Made] = []
        for _ in range(ROUNDS):
            held += [self._call(caller, safe, gated=True) for caller in self.callers for safe in (True, False)]
            await arrives("all runs", lambda: self._all_run(held))
            counts = [sum(made.safe == safe and self._by_victim(made.key) for made in held) for safe in (True, False)]
            if min(counts) >= WANTED and max(counts) < len(held) / 2:
                return held
        raise AssertionError(f"of {len(held)} calls, the worker has {counts[0]} and {counts[1]}")

    def _all_run(self, held: list[Made]) -> bool:
        for made in held:
            assert not made.answer.done(), f"{made.caller}: a call that waits ended with {made.answer.result()}"
        return all(self._runs(made.key) for made in held)

    async def _stream(self, caller: Caller, killed: asyncio.Event) -> None:
        """Short calls, before the kill and after it."""
        left = STREAMED
        while left > 0:
            left -= killed.is_set()
            for safe in (True, False):
                made = self._call(caller, safe)
                answer = await made.answer
                if safe:
                    self._expect_result(made, answer)

    def _call(self, caller: Caller, safe: bool, gated: bool = False) -> Made:
        key = next(self._keys)
        make: Callable[..., tuple] = self.part.safe if safe else self.part.unsafe
        tool, arguments, expected = make(key, gated)
        made = Made(key, safe, caller.name, expected, asyncio.create_task(caller.call(tool, arguments)))
        self._made.append(made)
        return made

    def _expect_result(self, made: Made, answer: Answer) -> None:
        assert answer.holds(made.expected), f"{made.caller}: expected {made.expected!r}, got {answer}"

    def _account(self, here: list[Made]) -> str:
        """Checks the calls that must not run twice, by the ledger."""
        lost = 0
        for made in self._made:
            answer, runs = made.answer.result(), len(self._runs(made.key))
            if made.safe:
                continue
            assert runs <= 1, f"{made.caller}: {made.key} ran {runs} times"
            if answer.holds(made.expected):
                assert runs == 1, f"{made.caller}: {made.key} has a result and did not run"
            elif answer.code in NOT_EXECUTED:
                assert runs == 0, f"{made.caller}: {made.key} ran, and ended with {answer}"
            else:
                assert answer.code == OUTCOME_UNKNOWN, f"{made.caller}: {made.key} ended with {answer}"
                lost += 1
        again = sum(made.safe for made in here)
        return f"{len(self._made)} calls; of those that the killed worker had, {again} ran again, {lost} ended with an error"

    def _lines(self) -> dict[int, list[tuple[int, int]]]:
        lines: dict[int, list[tuple[int, int]]] = {}
        for line in self._ledger.read_text().splitlines():
            key, pid, parent = map(int, line.split())
            lines.setdefault(key, []).append((pid, parent))
        return lines

    def _runs(self, key: int) -> list[tuple[int, int]]:
        return self._lines().get(key, [])

    def _by_victim(self, key: int) -> bool:
        """Whether the victim or one of its children ran the call."""
        return any(self.victim.pid in run for run in self._runs(key))
