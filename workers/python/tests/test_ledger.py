"""Refused and forgotten calls of the ledger's numbers."""

from __future__ import annotations

import unittest

from shoal_worker import errors
from shoal_worker._ledger import PART, Ledger, Refused
from shoal_worker._proto.shoal.types.v1 import call_pb2


def call(number: int, ledger: Ledger, bound: int | None) -> call_pb2.Call:
    said = None if bound is None else call_pb2.Ledger(incarnation=ledger.incarnation, number=bound)
    return call_pb2.Call(id=number.to_bytes(16, "big"), ledger=said)


def refusal(ledger: Ledger, said: call_pb2.Call) -> str | None:
    try:
        ledger.check(said)
    except Refused as refused:
        return refused.failure.WhichOneof("failure")
    return None


class LedgerTest(unittest.TestCase):
    def test_a_refusal_is_final_under_its_number_and_those_before(self) -> None:
        ledger = Ledger(PART * 4)
        one = call(1, ledger, ledger.number)
        ledger.remember(one.id, errors.overloaded("full"))
        self.assertEqual(refusal(ledger, one), "overloaded")
        number = 2
        while ledger.number == one.ledger.number:
            ledger.remember(number.to_bytes(16, "big"), None)
            number += 1
        self.assertIsNone(refusal(ledger, call(1, ledger, ledger.number)))

    def test_what_may_be_forgotten_is_not_run(self) -> None:
        ledger = Ledger(PART * 4)
        first, most = ledger.number, PART * 4 + 4
        for number in range(1, most + 1):
            ledger.remember(number.to_bytes(16, "big"), None)
        for number in range(1, most + 1):
            for bound in (first, None):
                self.assertEqual(refusal(ledger, call(number, ledger, bound)), "outcome_unknown", (number, bound))
        self.assertLessEqual(len(ledger._fates), PART * 4)
        self.assertIsNone(refusal(ledger, call(60_000, ledger, ledger.number)))


if __name__ == "__main__":
    unittest.main()
