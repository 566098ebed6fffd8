"""Remembers calls that must not run again, by the ledger's numbers.

The ledger counts up with what it remembers, without a clock, and forgets whole numbers, the oldest first. An unknown
call that was bound under a remembered number was neither accepted nor refused under that or an older binding.
"""

from __future__ import annotations

import secrets
from collections import deque

from . import errors
from ._proto.shoal.types.v1 import call_pb2

PART = 64
"""The ids of one number are this part of all that are remembered."""


class Refused(Exception):
    """The call does not run."""

    def __init__(self, failure: call_pb2.CallFailure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class Ledger:
    """The fate of journaled calls: the reason of a refusal, or `None` if accepted."""

    def __init__(self, most: int) -> None:
        self.incarnation = secrets.randbits(63) or 1
        self._part = max(1, most // PART)
        self._oldest = 0
        self._numbers: deque[list[bytes]] = deque([[]])
        self._fates: dict[bytes, tuple[int, call_pb2.CallFailure | None]] = {}
        self._horizon = b""

    @property
    def number(self) -> int:
        """The present number, under which nodes bind calls to this worker."""
        return self._oldest + len(self._numbers) - 1

    def check(self, call: call_pb2.Call) -> None:
        """Raises the refusal of an unknown journaled call that must not run."""
        number, refusal = self._fates.get(call.id, (None, None))
        if number is not None and refusal is None:
            raise Refused(errors.outcome_unknown("its worker may have run it before, and its result is gone"))
        if refusal is not None and refusal.HasField("cancelled"):
            # A node that binds the call anew does not know that it is cancelled.
            raise Refused(refusal)
        if not call.HasField("ledger"):
            if call.id <= self._horizon:
                raise Refused(errors.outcome_unknown("its worker may have forgotten that it has run it"))
            return
        if call.ledger.incarnation != self.incarnation:
            raise Refused(errors.outcome_unknown("its worker has started anew since the call was bound to it"))
        if refusal is not None and number is not None and call.ledger.number <= number:
            raise Refused(refusal)
        if not self._oldest <= call.ledger.number <= self.number:
            raise Refused(errors.outcome_unknown("it was bound so long ago that its worker may have forgotten it"))

    def remember(self, call: bytes, refusal: call_pb2.CallFailure | None) -> None:
        """Records a refused call, or an accepted one that is otherwise forgotten."""
        self._fates[call] = (self.number, refusal)
        self._numbers[-1].append(call)
        if len(self._numbers[-1]) >= self._part:
            self._numbers.append([])
            if len(self._numbers) > PART:
                self._forget_oldest()

    def _forget_oldest(self) -> None:
        number = self._oldest
        self._oldest += 1
        for call in self._numbers.popleft():
            self._horizon = max(self._horizon, call)
            # The call may have been recorded again since.
            if self._fates.get(call, (None, None))[0] == number:
                del self._fates[call]
