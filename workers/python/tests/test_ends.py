"""A call has one outcome, however its tool ends."""

from __future__ import annotations

import asyncio
import json
import sys
import unittest
from typing import Any

from shoal_worker import Context, Limits, RpcError, ToolError, _tools
from shoal_worker._proto.shoal.types.v1 import call_pb2
from shoal_worker._proto.shoal.worker.v1 import worker_pb2
from shoal_worker._record import Record
from shoal_worker._runtime import Runtime
from shoal_worker._tools import Tool

SURROGATE = "a\ud800b"


def stop() -> None:
    raise StopIteration


class EndsTest(unittest.IsolatedAsyncioTestCase):
    async def outcome(self, function: Any) -> call_pb2.CallOutcome:
        tools = {"t": Tool(function, name="t", description=None, input_schema=None, title=None)}

        async def run(record: Record) -> call_pb2.CallOutcome:
            return await _tools.run(tools, record.call, Context(record, runtime.places), asyncio.get_running_loop())

        runtime = Runtime("w", "t", Limits(), worker_pb2.Catalog, run)
        call = call_pb2.Call(id=b"1" * 16, method="tools/call", timeout_ms=5000)
        call.params = json.dumps({"name": "t", "arguments": {}}).encode()
        call.durability = call_pb2.DURABILITY_REPEATABLE
        record = runtime.start(call, False)
        await asyncio.wait_for(record.done.wait(), 10)
        return record.outcome

    async def test_everything_a_tool_raises_is_an_answer(self) -> None:
        def exits() -> None:
            sys.exit(3)

        async def exits_here() -> None:
            sys.exit(3)

        for function, told in [
            (exits, "SystemExit: 3"),
            (exits_here, "SystemExit: 3"),
            (stop, "StopIteration"),
        ]:
            outcome = await self.outcome(function)
            self.assertEqual(outcome.WhichOneof("outcome"), "result", function)
            result = json.loads(outcome.result)
            self.assertEqual((result["isError"], result["content"][0]["text"]), (True, told))

    async def test_what_is_no_unicode_is_sent_with_question_marks(self) -> None:
        async def returns() -> str:
            return SURROGATE

        async def fails() -> None:
            raise ToolError(SURROGATE)

        for function in (returns, fails):
            outcome = await self.outcome(function)
            self.assertEqual(json.loads(outcome.result)["content"][0]["text"], "a?b")

    async def test_what_cannot_be_sent_is_an_error(self) -> None:
        async def not_a_number() -> dict:
            return {"content": [], "structuredContent": {"x": float("nan")}}

        async def too_large() -> None:
            raise RpcError(2**70, "?")

        async def no_json() -> None:
            raise RpcError(1, "?", data={1, 2})

        for function in (not_a_number, too_large, no_json):
            outcome = await self.outcome(function)
            self.assertEqual(outcome.WhichOneof("outcome"), "error", function)
            self.assertIn("cannot be sent", outcome.error.message)
