"""Exceptions of tools, and the failures of Shoal."""

from __future__ import annotations

import json
from typing import Any

from ._proto.shoal.types.v1 import call_pb2, rpc_pb2

INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601
INTERNAL = -32603
MISSING_CAPABILITY = -32021


class ToolError(Exception):
    """The tool failed. The model sees the message, in a result with `isError`."""


class RpcError(Exception):
    """A JSON-RPC error of a call, of its client or of its session."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def to_proto(self) -> rpc_pb2.RpcError:
        data = None if self.data is None else json.dumps(self.data).encode()
        return rpc_pb2.RpcError(code=self.code, message=self.message, data=data)

    @classmethod
    def of_proto(cls, error: rpc_pb2.RpcError) -> RpcError:
        return cls(error.code, error.message, json.loads(error.data) if error.HasField("data") else None)


def not_executed(reason: str) -> call_pb2.CallFailure:
    return call_pb2.CallFailure(not_executed=call_pb2.CallFailure.NotExecuted(reason=reason))


def overloaded(reason: str, retry_after_ms: int = 1000) -> call_pb2.CallFailure:
    failure = call_pb2.CallFailure.Overloaded(reason=reason, retry_after_ms=retry_after_ms)
    return call_pb2.CallFailure(overloaded=failure)


def outcome_unknown(reason: str) -> call_pb2.CallFailure:
    return call_pb2.CallFailure(outcome_unknown=call_pb2.CallFailure.OutcomeUnknown(reason=reason))


def deadline_exceeded(limit_ms: int) -> call_pb2.CallFailure:
    return call_pb2.CallFailure(deadline_exceeded=call_pb2.CallFailure.DeadlineExceeded(limit_ms=limit_ms))


def cancelled() -> call_pb2.CallFailure:
    return call_pb2.CallFailure(cancelled=call_pb2.CallFailure.Cancelled())
