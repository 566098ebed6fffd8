"""Plants a fault in the package and expects `shoal worker-check` to find it.

    python planted.py target/debug/shoal
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from shoal_worker import _flight, _link, errors
from shoal_worker._dial import Dialer
from shoal_worker._ledger import Ledger, Refused
from shoal_worker._proto.shoal.worker.v1 import worker_pb2
from shoal_worker._record import Record
from shoal_worker._runtime import Runtime

import checked


def forgets_what_ran() -> None:
    Ledger.remember = lambda *_: None  # type: ignore[method-assign]


def believes_every_number() -> None:
    Ledger.check = lambda *_: None  # type: ignore[method-assign]


def runs_what_is_cancelled() -> None:
    refusal = Runtime._refusal

    def careless(runtime: Runtime, call: Any, parted: bool) -> Any:
        call.attach_only = False
        return refusal(runtime, call, parted)

    Runtime._refusal = careless  # type: ignore[method-assign]


def keeps_nothing() -> None:
    Runtime._retire = lambda runtime, record: runtime._forget(record)  # type: ignore[method-assign]


def keeps_acknowledged() -> None:
    Runtime.acknowledge = lambda *_: None  # type: ignore[method-assign]


def sends_long_messages() -> None:
    _link.LONGEST_WHOLE = 1 << 30


def ignores_credit() -> None:
    grant = _flight.Flight.__init__

    def generous(flight: Any, link: Any, number: int, record: Any, _credit: int) -> None:
        grant(flight, link, number, record, 1 << 40)

    _flight.Flight.__init__ = generous  # type: ignore[method-assign]


def ends_calls_with_their_link() -> None:
    def hasty(_runtime: Any, record: Record, _reader: int) -> None:
        record.stop(errors.cancelled())

    Runtime.deserted = hasty  # type: ignore[method-assign]


def lets_anybody_come_back() -> None:
    attach = Record.attach
    Record.attach = lambda record, flight, after, _name=0: attach(record, flight, after)  # type: ignore[method-assign]


def does_not_acknowledge_answers() -> None:
    def quiet(flight: Any, ask: int, outcome: Any) -> None:
        flight.record.answer(flight, ask, outcome)

    _flight.Flight.answer = quiet  # type: ignore[method-assign]


def asks_anybody() -> None:
    context = checked.Context.ask

    async def bold(self: Any, method: str, params: Any, capability: str) -> Any:
        self.capabilities[capability] = {}
        return await context(self, method, params, capability)

    checked.Context.ask = bold  # type: ignore[method-assign]


def runs_on_after_sessions() -> None:
    Runtime.end_session = lambda *_: None  # type: ignore[method-assign]


def leaves_at_once() -> None:
    async def rude(*_: Any) -> None:
        return None

    Dialer.leave = rude  # type: ignore[method-assign]


def refuses_all_after_its_goodbye() -> None:
    start = Runtime.start

    def hasty(runtime: Runtime, call: Any, parted: bool) -> Record:
        if parted:
            raise Refused(errors.not_executed("the worker has left"))
        return start(runtime, call, parted)

    Runtime.start = hasty  # type: ignore[method-assign]


def reports_nothing() -> None:
    Runtime.load = lambda _runtime: worker_pb2.Load()  # type: ignore[method-assign]


FAULTS = {
    forgets_what_ran: "acknowledged",
    believes_every_number: "other_incarnation",
    runs_what_is_cancelled: "attach_only",
    keeps_nothing: "kept_result",
    keeps_acknowledged: "acknowledged",
    sends_long_messages: "fragments",
    ignores_credit: "credit",
    ends_calls_with_their_link: "broken_link",
    lets_anybody_come_back: "replaced_reader_returns",
    does_not_acknowledge_answers: "question",
    asks_anybody: "undeclared",
    runs_on_after_sessions: "end_session",
    leaves_at_once: "drain",
    refuses_all_after_its_goodbye: "drain",
    reports_nothing: "load",
}
"""What is planted, and the check that finds it."""


def main() -> int:
    if sys.argv[1] == "--fault":
        next(fault for fault in FAULTS if fault.__name__ == sys.argv[2])()
        checked.worker.run()
        return 0
    missed = 0
    for fault, check in FAULTS.items():
        words = [sys.argv[1], "worker-check", "--timeout", "2s", "--only", check]
        worker = [sys.executable, "-B", __file__, "--fault", fault.__name__]
        found = subprocess.run([*words, "--", *worker], capture_output=True, text=True)
        line = next((line for line in found.stdout.splitlines() if line.startswith("FAIL ")), found.stdout[-200:])
        right = found.returncode == 3 and line.startswith(f"FAIL {check}:")
        missed += not right
        print(f"ok {fault.__name__}" if right else f"FAIL {fault.__name__}: {check} does not find it: {line}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
