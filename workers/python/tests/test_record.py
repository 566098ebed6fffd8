"""Withdrawn questions, and who is told of them."""

from __future__ import annotations

import asyncio
import unittest
from types import SimpleNamespace

from shoal_worker._proto.shoal.types.v1 import call_pb2
from shoal_worker._proto.shoal.worker.v1 import worker_pb2
from shoal_worker._record import Event, Record


class RecordTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.record = Record(call_pb2.Call(id=b"1" * 16))
        self.reader = self.attach(0)

    def attach(self, after: int) -> SimpleNamespace:
        reader = SimpleNamespace(wake=asyncio.Event())
        self.assertTrue(self.record.attach(reader, after))
        return reader

    def ask(self) -> int:
        message = worker_pb2.Event.Ask(method="roots/list")
        return self.record.ask("ask", message, 0, state=False)[0]

    def sent(self, reader: SimpleNamespace) -> Event | None:
        event = self.record.next_after(reader.read)
        if event is not None:
            reader.read = event.sequence
            self.record.was_read(event.sequence)
        return event

    def assert_withdrawn(self, ask: int, reader: SimpleNamespace) -> None:
        event = self.sent(reader)
        self.assertIsNotNone(event)
        self.assertEqual(event.kind, {"withdrawn": worker_pb2.Event.Withdrawn(ask=ask)})

    async def test_a_reader_hears_of_the_end_of_questions_that_it_has(self) -> None:
        unread = self.ask()
        self.record.withdraw_ask(unread)
        self.assertIsNone(self.sent(self.reader))
        had = self.ask()
        self.sent(self.reader)
        self.record.withdraw_ask(had)
        self.assert_withdrawn(had, self.reader)

    async def test_a_later_reader_hears_of_the_end_of_an_earlier_ones_question(self) -> None:
        for reads_on in (True, False):
            had = self.ask()
            self.sent(self.reader)
            later = self.attach(self.record.last - (not reads_on))
            self.record.withdraw_ask(had)
            self.assert_withdrawn(had, later)
            self.reader = later

    async def test_questions_that_are_given_up_take_no_room_before_a_reader_that_stalls(self) -> None:
        for _ in range(100):
            self.record.withdraw_ask(self.ask())
        self.assertEqual(self.record.bytes, 0)

    async def test_a_request_to_the_session_is_withdrawn_in_silence(self) -> None:
        state, _ = self.record.ask("state", worker_pb2.Event.State(), 0, state=True)
        self.sent(self.reader)
        self.record.withdraw_ask(state)
        self.assertIsNone(self.sent(self.reader))


if __name__ == "__main__":
    unittest.main()
