"""The state of one call: its events, questions and reader."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._proto.shoal.types.v1 import call_pb2, rpc_pb2
from ._proto.shoal.worker.v1 import worker_pb2

if TYPE_CHECKING:
    from ._flight import Flight

KEPT_EVENTS = 256
KEPT_BYTES = 1024 * 1024
UNREAD_EVENTS = 64
"""Events that a reader may be behind before the tool waits for it."""
WEIGHT = 256
"""What an event costs beside its payload."""


@dataclass
class Event:
    """An event, with its number in its call."""

    sequence: int
    kind: dict[str, Any]
    """The member of the frame's `kind`."""
    cost: int
    ask: int = 0
    state: bool = False


class Record:
    """One call, from its admission until readers can no longer attach."""

    def __init__(self, call: call_pb2.Call) -> None:
        self.call = call
        self.id = bytes(call.id)
        self.once = call.durability != call_pb2.DURABILITY_REPEATABLE
        self.session = call.caller.session if call.caller.HasField("session") else None
        self.begun = False
        self.waiting = True
        """Whether it has neither begun nor ended."""
        self.stopped = False
        self.delivered = False
        """Whether a reader has been given the end."""
        self.ended_at = 0.0
        self.outcome: call_pb2.CallOutcome | None = None
        self.done = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self.reader: Flight | None = None
        self.readers = 0
        self.name = 0
        """The name of the latest reader: its number when it first came."""
        self.read = 0
        """The number of the newest event that any reader has been sent."""
        self.last = 0
        self.kept_bytes = 0
        self.bytes = 0
        self._events: deque[Event] = deque()
        self._asks: dict[int, asyncio.Future[rpc_pb2.Outcome]] = {}
        self._asked = 0
        self._answered: deque[int] = deque(maxlen=128)
        self._room = asyncio.Event()

    # Events

    def push(self, kind: dict[str, Any], payload: int, ask: int = 0, state: bool = False) -> None:
        self.last += 1
        event = Event(self.last, kind, payload + WEIGHT, ask, state)
        self._events.append(event)
        self.bytes += event.cost
        self._trim()
        self._wake()

    async def notify(self, method: str, params: bytes) -> None:
        """Sends a notification, and waits while the reader is too far behind. Does nothing after the call's end."""
        while self.outcome is None and self._is_full():
            self._room.clear()
            await self._room.wait()
        if self.outcome is None:
            said = worker_pb2.Event.Notification(method=method, params=params)
            self.push({"notification": said}, len(params))

    def next_after(self, sequence: int) -> Event | None:
        return next((event for event in self._events if event.sequence > sequence), None)

    def was_read(self, sequence: int) -> None:
        """Marks the events up to this number as read."""
        self.read = max(self.read, sequence)
        self._room.set()

    def _is_full(self) -> bool:
        if self.reader is None:
            return False
        unread = [event for event in self._events if event.sequence > self.reader.read]
        return len(unread) >= UNREAD_EVENTS or sum(event.cost for event in unread) >= KEPT_BYTES

    def _trim(self) -> None:
        """Drops the oldest read events, except open questions and the end."""
        read = self.last if self.reader is None else self.reader.read
        for event in list(self._events):
            if len(self._events) <= KEPT_EVENTS and self.bytes <= KEPT_BYTES:
                return
            if event.sequence <= read and not event.ask and "finished" not in event.kind:
                self._drop(event)

    def _drop(self, event: Event) -> None:
        self._events.remove(event)
        self.bytes -= event.cost

    def _wake(self) -> None:
        if self.reader is not None:
            self.reader.wake.set()

    # The end

    def finish(self, outcome: call_pb2.CallOutcome) -> bool:
        """Ends the call. Returns `False` if it has ended already."""
        if self.outcome is not None:
            return False
        self.outcome = outcome
        self.waiting = False
        self.ended_at = asyncio.get_running_loop().time()
        error = outcome.error
        self.push({"finished": outcome}, len(outcome.result) + len(error.message.encode()) + len(error.data))
        for ask, answer in self._asks.items():
            self._forget_ask(ask)
            answer.cancel()
        self._asks.clear()
        self._room.set()
        self.done.set()
        return True

    def stop(self, failure: call_pb2.CallFailure) -> bool:
        """Ends the call with `failure`, and tells the tool to stop."""
        ended = self.finish(call_pb2.CallOutcome(failure=failure))
        self.stopped = True
        if ended and self.task is not None:
            self.task.cancel()
        return ended

    # Questions

    def ask(self, kind: str, message: Any, payload: int, state: bool) -> tuple[int, asyncio.Future[rpc_pb2.Outcome]]:
        self._asked += 1
        message.ask = self._asked
        answer: asyncio.Future[rpc_pb2.Outcome] = asyncio.get_running_loop().create_future()
        if self.outcome is not None:
            answer.cancel()
            return self._asked, answer
        self._asks[self._asked] = answer
        self.push({kind: message}, payload, ask=self._asked, state=state)
        return self._asked, answer

    def answer(self, flight: Flight, ask: int, outcome: rpc_pb2.Outcome) -> bool:
        """Returns whether the question has its answer: this one, or an earlier one whose acknowledgement was lost."""
        if flight.number_of_reader != self.readers:
            return False
        waiting = self._asks.pop(ask, None)
        if waiting is None:
            return ask in self._answered
        self._forget_ask(ask)
        if waiting.done():
            return False
        self._answered.append(ask)
        waiting.set_result(outcome)
        return True

    def withdraw_ask(self, ask: int) -> None:
        """Drops an open question, and tells a node that has asked the client."""
        if self._asks.pop(ask, None) is None:
            return
        event = self._forget_ask(ask)
        if event is not None and event.sequence <= self.read and not event.state:
            self.push({"withdrawn": worker_pb2.Event.Withdrawn(ask=ask)}, 0)

    def _forget_ask(self, ask: int) -> Event | None:
        event = next((event for event in self._events if event.ask == ask), None)
        if event is not None:
            self._drop(event)
        return event

    # Readers

    def attach(self, flight: Flight, after: int, name: int = 0) -> bool:
        """Gives the call to a reader; `False` for a returning reader that was replaced."""
        if name and name != self.name:
            return False
        self.readers += 1
        if not name:
            self.name = self.readers
        before, self.reader = self.reader, flight
        flight.number_of_reader, flight.name, flight.read = self.readers, self.name, after
        self.read = max(self.read, min(after, self.last))
        # The answer to a session request may be lost with the node that saw it, so send the request again.
        for event in [event for event in self._events if event.state and event.sequence <= after]:
            self._drop(event)
            self.push(event.kind, event.cost - WEIGHT, event.ask, state=True)
        if before is not None:
            before.wake.set()
        self._room.set()
        return True

    def leave(self, flight: Flight) -> bool:
        """Removes a reader. Returns whether the call has no reader now."""
        if self.reader is not flight:
            return False
        self.reader = None
        self._room.set()
        return True
