"""One reader of one call, for as long as its link lasts."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from ._proto.shoal.types.v1 import call_pb2, rpc_pb2
from ._proto.shoal.worker.v1 import worker_pb2
from . import errors

if TYPE_CHECKING:
    from ._link import Link
    from ._record import Event, Record

ACCEPT_SECONDS = 0.001
"""How long a call may say nothing before the node is told that it runs."""


class Flight:
    """One reader of one call. Its task sends everything in order."""

    def __init__(self, link: Link, number: int, record: Record, credit: int) -> None:
        self.number = number
        self.record = record
        self.wake = asyncio.Event()
        self.number_of_reader = 0
        self.name = 0
        self.read = 0
        """The number of the last event that was sent."""
        self.reading = True
        self._link = link
        self._credit = credit
        self._spoken = False
        self._taken: deque[tuple[int, bool]] = deque()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    def close(self) -> None:
        """Ends the flight; the call continues."""
        if self._task is not None:
            self._task.cancel()
        self._stop_reading()

    def grant(self, amount: int) -> None:
        self._credit += amount
        self.wake.set()

    def answer(self, ask: int, outcome: rpc_pb2.Outcome) -> None:
        self._taken.append((ask, self.record.answer(self, ask, outcome)))
        self.wake.set()

    def cancel(self) -> None:
        if self.number_of_reader == self.record.readers:
            self.record.stop(errors.cancelled())

    def detach(self) -> None:
        """Stops sending events; the call can still be answered and cancelled."""
        self.reading = False
        self._stop_reading()

    def _stop_reading(self) -> None:
        if self.record.leave(self):
            self._link.runtime.deserted(self.record, self.number_of_reader)

    async def _run(self) -> None:
        while await self._step():
            pass
        self._link.drop(self)
        self._stop_reading()

    async def _step(self) -> bool:
        """Sends the next frame. Returns whether more may follow."""
        self.wake.clear()
        if self._taken:
            ask, is_open = self._taken.popleft()
            said = worker_pb2.AnswerTaken(flight=self.number, ask=ask, open=is_open)
            await self._link.send(self.number, answer_taken=said)
            return True
        if self.reading and self.number_of_reader != self.record.readers:
            await self._link.send(self.number, lost=worker_pb2.Lost(flight=self.number, replaced=True))
            return False
        event = self.record.next_after(self.read) if self.reading and self._credit > 0 else None
        if event is None:
            await self._wait()
            return True
        return await self._send(event)

    async def _wait(self) -> None:
        if self._spoken:
            await self.wake.wait()
            return
        try:
            await asyncio.wait_for(self.wake.wait(), ACCEPT_SECONDS)
        except asyncio.TimeoutError:
            self._spoken = True
            said = worker_pb2.Accepted(flight=self.number, reader=self.name)
            await self._link.send(self.number, accepted=said)

    async def _send(self, event: Event) -> bool:
        ends = "finished" in event.kind
        said = worker_pb2.Event(flight=self.number, sequence=event.sequence, **event.kind)
        said.reader = 0 if self._spoken else self.name
        cost = event.cost
        if said.ByteSize() > self._link.longest_frame:
            said, cost = self._stand_in(said, event, ends)
        self.read, self._spoken = event.sequence, True
        self._credit -= cost
        self.record.was_read(event.sequence)
        await self._link.send(self.number, event=said)
        if ends:
            self._link.runtime.delivered(self.record)
        return not ends

    def _stand_in(self, said: worker_pb2.Event, event: Event, ends: bool) -> tuple[worker_pb2.Event, int]:
        """Replaces an overlong event: an end becomes an error, other events only count."""
        too_long = f"it is longer than the {self._link.longest_frame} bytes that the node takes"
        stand_in = worker_pb2.Event(flight=self.number, sequence=said.sequence, reader=said.reader)
        if ends:
            error = errors.RpcError(errors.INTERNAL, f"the result was not passed on: {too_long}").to_proto()
            stand_in.finished.CopyFrom(call_pb2.CallOutcome(error=error))
            return stand_in, len(error.message.encode()) + 256
        if event.ask:
            error = errors.RpcError(errors.INTERNAL, f"the request was not passed on: {too_long}").to_proto()
            self.record.answer(self, event.ask, rpc_pb2.Outcome(error=error))
        return stand_in, 256
