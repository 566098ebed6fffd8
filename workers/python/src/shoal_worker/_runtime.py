"""Runs calls within limits, and remembers which have run."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from . import errors
from ._ledger import Ledger, Refused
from ._proto.shoal.types.v1 import call_pb2
from ._proto.shoal.worker.v1 import worker_pb2
from ._record import Record

if TYPE_CHECKING:
    from .settings import Limits

log = logging.getLogger("shoal_worker")

SWEEP_SECONDS = 1.0
ENDED_SESSIONS = 10_000
"""Sessions that are over and whose late calls are refused."""

Run = Callable[[Record], Awaitable[call_pb2.CallOutcome]]


class Places:
    """Counts calls that run, wait for a slot, or wait for their clients."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.running = 0
        self.queued = 0
        self.asking: Counter[str] = Counter()
        """Calls that wait for their clients, by principal."""
        self._free = asyncio.Semaphore(limits.concurrency)

    def begin_asking(self, principal: str) -> bool:
        """Marks a call as waiting for its client; `False` if too many wait."""
        limits, asking = self.limits, self.asking
        if asking.total() >= limits.asking or asking[principal] >= limits.asking_per_principal:
            return False
        asking[principal] += 1
        return True

    def end_asking(self, principal: str) -> None:
        self.asking[principal] -= 1
        if not self.asking[principal]:
            del self.asking[principal]

    async def enter(self) -> None:
        self.queued += 1
        try:
            await self._free.acquire()
        finally:
            self.queued -= 1
        self.running += 1

    def leave(self) -> None:
        self.running -= 1
        self._free.release()


class Runtime:
    """A worker's calls over all links."""

    def __init__(self, name: str, pool: str, limits: Limits, catalog: Callable[[], worker_pb2.Catalog], run: Run) -> None:
        self.name, self.pool, self.limits = name, pool, limits
        self.ledger = Ledger(limits.remembered_calls)
        self.places = Places(limits)
        self.draining = False
        self.catalog = catalog
        self.links_changed = asyncio.Event()
        self._run = run
        self._calls: dict[bytes, Record] = {}
        self._ended: OrderedDict[bytes, None] = OrderedDict()
        """Calls that have ended and are kept, the oldest first."""
        self._kept_bytes = 0
        self._over: OrderedDict[str, None] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def load(self) -> worker_pb2.Load:
        return worker_pb2.Load(
            running=self.places.running,
            queued=self.places.queued,
            capacity=0 if self.draining else self.limits.concurrency,
            ledger=self.ledger.number,
        )

    # Calls

    def start(self, call: call_pb2.Call, parted: bool) -> Record:
        """Runs a call, or finds a known one; raises `Refused`."""
        known = self._calls.get(bytes(call.id))
        if known is not None:
            return known
        once = call.durability != call_pb2.DURABILITY_REPEATABLE
        if once:
            self.ledger.check(call)
        refusal = self._refusal(call, parted)
        if refusal is not None:
            if once:
                # Final for this binding, so that the node may bind the call elsewhere.
                self.ledger.remember(bytes(call.id), refusal)
            raise Refused(refusal)
        record = Record(call)
        self._calls[record.id] = record
        self._spawn(self._carry(record))
        return record

    def find(self, call: bytes) -> Record | None:
        return self._calls.get(call)

    def _refusal(self, call: call_pb2.Call, parted: bool) -> call_pb2.CallFailure | None:
        if call.attach_only:
            return errors.cancelled()
        if call.caller.session and call.caller.session in self._over:
            return errors.cancelled()
        if parted:
            return errors.not_executed("the worker has left")
        if self.places.queued >= self.limits.queue:
            return errors.overloaded(f"the queue of pool {self.pool} is full")
        return None

    async def _carry(self, record: Record) -> None:
        """Runs a call: slot, deadline, tool."""
        deadline = asyncio.get_running_loop().time() + record.call.timeout_ms / 1000
        if not await self._place(record, deadline):
            late = errors.overloaded(f"it waited too long for a place in pool {self.pool}")
            self._finish(record, call_pb2.CallOutcome(failure=late))
            return
        try:
            if record.outcome is None:
                await self._run_to(record, deadline)
        finally:
            self.places.leave()
            self._retire(record)

    async def _place(self, record: Record, deadline: float) -> bool:
        """Waits for a slot until the call may wait no longer or is cancelled."""
        entering, ended = asyncio.create_task(self.places.enter()), asyncio.create_task(record.done.wait())
        patience = min(self.limits.queue_seconds, deadline - asyncio.get_running_loop().time())
        await asyncio.wait([entering, ended], timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if not entering.done():
            entering.cancel()
        try:
            await entering
        except asyncio.CancelledError:
            return False
        return True

    async def _run_to(self, record: Record, deadline: float) -> None:
        record.begun, record.waiting = True, False
        record.task = task = asyncio.create_task(self._tool(record))
        left = deadline - asyncio.get_running_loop().time()
        ended = asyncio.create_task(record.done.wait())
        await asyncio.wait([task, ended], timeout=max(left, 0), return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if not task.done():
            record.stop(errors.deadline_exceeded(record.call.timeout_ms))
            # A stopping tool keeps its slot.
            await asyncio.wait([task], timeout=self.limits.cancel_seconds)
            if not task.done():
                log.warning("a tool goes on %s s after it was told to stop", self.limits.cancel_seconds)

    async def _tool(self, record: Record) -> None:
        try:
            outcome = await self._run(record)
        except asyncio.CancelledError:
            # The cancellation has already set the outcome.
            outcome = call_pb2.CallOutcome(failure=errors.outcome_unknown("its tool was stopped"))
        except Exception as error:
            log.exception("what a tool returned or raised cannot be sent")
            words = f"what the tool returned or raised cannot be sent: {type(error).__name__}"
            outcome = call_pb2.CallOutcome(error=errors.RpcError(errors.INTERNAL, words).to_proto())
        record.finish(outcome)

    def _finish(self, record: Record, outcome: call_pb2.CallOutcome) -> None:
        record.finish(outcome)
        self._retire(record)

    # What is kept

    def _retire(self, record: Record) -> None:
        """Keeps an ended call and drops the oldest ones."""
        if record.id not in self._calls or record.id in self._ended:
            return
        self._ended[record.id] = None
        self._kept_bytes += record.bytes
        record.kept_bytes = record.bytes
        if record.delivered and self._is_passing(record):
            self._forget(record)
        while len(self._ended) > self.limits.kept_calls or self._kept_bytes > self.limits.kept_bytes:
            self._forget(self._calls[next(iter(self._ended))])

    def _is_passing(self, record: Record) -> bool:
        """Whether a call is dropped once its end was read: it may be repeated and sent only its end."""
        return not record.once and record.last == 1

    def delivered(self, record: Record) -> None:
        """Marks that a reader has the call's end."""
        record.delivered = True
        if record.id in self._ended and self._is_passing(record):
            self._forget(record)

    def acknowledge(self, call: bytes) -> None:
        """Drops a result that is safe elsewhere."""
        record = self._calls.get(call)
        if record is not None and record.outcome is not None:
            self._forget(record)

    def _forget(self, record: Record) -> None:
        if self._calls.pop(record.id, None) is None:
            return
        if record.id in self._ended:
            del self._ended[record.id]
            self._kept_bytes -= record.kept_bytes
        if record.once:
            # The call was refused without running.
            outcome = record.outcome
            refused = outcome.failure if outcome is not None and not record.begun else None
            self.ledger.remember(record.id, refused)

    async def sweep(self) -> None:
        """Drops calls that were kept long enough."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            until = asyncio.get_running_loop().time() - self.limits.kept_seconds
            while self._ended:
                oldest = self._calls[next(iter(self._ended))]
                if oldest.ended_at > until:
                    break
                self._forget(oldest)

    # Sessions and readers

    def end_session(self, session: str) -> None:
        self._over[session] = None
        if len(self._over) > ENDED_SESSIONS:
            self._over.popitem(last=False)
        for record in list(self._calls.values()):
            if record.session == session:
                record.stop(errors.cancelled())

    def deserted(self, record: Record, reader: int) -> None:
        """Cancels a call without a session, unless a reader attaches in time."""
        if record.session is None and record.outcome is None:
            self._spawn(self._watch(record, reader))

    async def _watch(self, record: Record, reader: int) -> None:
        await asyncio.sleep(self.limits.deserted_seconds)
        if record.readers == reader:
            record.stop(errors.cancelled())

    def open_calls(self) -> int:
        """Counts the calls that may still be read."""
        soon = asyncio.get_running_loop().time() - self.limits.deserted_seconds
        calls = self._calls.values()
        waited_for = [
            record
            for record in calls
            if record.outcome is not None and not record.delivered and record.ended_at > soon
            if record.session is not None or not record.stopped
        ]
        return self.places.running + self.places.queued + self.places.asking.total() + len(waited_for)

    def stop_all(self) -> None:
        for record in list(self._calls.values()):
            lost = "its worker was shut down before it ended"
            record.stop(errors.outcome_unknown(lost) if record.begun else errors.not_executed(lost))

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
