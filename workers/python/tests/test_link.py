"""A worker against a test's node: blocking tools, and dialling."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import queue
import socket
import threading
import time
import unittest
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import grpc
from shoal_worker import Context, Worker
from shoal_worker._proto.shoal.types.v1 import call_pb2, link_pb2
from shoal_worker._proto.shoal.worker.v1 import worker_pb2

SOON = 20


class Node:
    """A node for one worker at a time: `frames` has the received frames, `say` sends."""

    def __init__(self) -> None:
        self.frames: queue.Queue[worker_pb2.WorkerFrame] = queue.Queue()
        self._said: queue.Queue[worker_pb2.NodeFrame | None] = queue.Queue()
        handler = grpc.stream_stream_rpc_method_handler(
            self._link,
            request_deserializer=worker_pb2.WorkerFrame.FromString,
            response_serializer=worker_pb2.NodeFrame.SerializeToString,
        )
        self._server = grpc.server(ThreadPoolExecutor(4))
        self._server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler("shoal.worker.v1.WorkerLink", {"Link": handler})]
        )
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def _link(self, frames: Iterator[worker_pb2.WorkerFrame], _context: Any) -> Iterator[worker_pb2.NodeFrame]:
        def read() -> None:
            try:
                for frame in frames:
                    self.frames.put(frame)
            except grpc.RpcError:
                pass

        threading.Thread(target=read, daemon=True).start()
        yield worker_pb2.NodeFrame(welcome=worker_pb2.Welcome(version=4, node="node"))
        while (said := self._said.get()) is not None:
            yield said

    def say(self, **frame: Any) -> None:
        self._said.put(worker_pb2.NodeFrame(**frame))

    def call(self, flight: int, tool: str, **arguments: Any) -> None:
        call = call_pb2.Call(id=flight.to_bytes(16, "big"), method="tools/call", timeout_ms=60_000)
        call.params = json.dumps({"name": tool, "arguments": arguments}).encode()
        call.durability = call_pb2.DURABILITY_REPEATABLE
        call.caller.capabilities = b'{"elicitation":{}}'
        self.say(start=worker_pb2.Start(flight=flight, call=call))

    def wait_for(self, kind: str, wanted: Callable[[Any], bool] = lambda _: True) -> Any:
        """Waits for a frame of a kind."""
        end = time.monotonic() + SOON
        while True:
            try:
                frame = self.frames.get(timeout=max(end - time.monotonic(), 0))
            except queue.Empty:
                raise AssertionError(f"no {kind} came") from None
            if frame.WhichOneof("frame") == kind and wanted(getattr(frame, kind)):
                return getattr(frame, kind)

    def result(self, flight: int) -> str:
        ends = lambda event: event.flight == flight and event.HasField("finished")  # noqa: E731
        outcome = self.wait_for("event", ends).finished
        return json.loads(outcome.result)["content"][0]["text"]

    def close(self) -> None:
        self.say(close=link_pb2.Close())
        self.end()

    def end(self) -> None:
        self._said.put(None)

    def stop(self) -> None:
        self._said.put(None)
        self._server.stop(None).wait()


class LinkTest(unittest.TestCase):
    def setUp(self) -> None:
        self.node = Node()
        self.addCleanup(self.node.stop)
        self.worker = Worker("test")

    def serve(self) -> None:
        """Serves in a thread until the test ends."""
        serving = threading.Thread(target=lambda: asyncio.run(self.worker.serve(self.node.address, drain=1)))
        serving.start()

        def end() -> None:
            self.worker.stop()
            self.node.wait_for("goodbye")
            self.node.close()
            serving.join(SOON)
            self.assertFalse(serving.is_alive(), "the worker ends")

        self.addCleanup(end)
        self.node.wait_for("announce")

    def test_a_worker_that_leaves_stays_until_the_node_has_read_what_it_refused(self) -> None:
        @self.worker.tool()
        def plain() -> str:
            return "run"

        serving = threading.Thread(target=lambda: asyncio.run(self.worker.serve(self.node.address, drain=1)))
        serving.start()
        self.node.wait_for("announce")
        self.worker.stop()
        self.node.wait_for("goodbye")
        self.node.call(1, "plain")
        self.node.say(close=link_pb2.Close())
        refused = self.node.wait_for("refused")
        self.assertTrue(refused.flight == 1 and refused.failure.HasField("not_executed"))
        serving.join(0.3)
        self.assertTrue(serving.is_alive(), "the node has not ended its half")
        self.node.end()
        serving.join(SOON)
        self.assertFalse(serving.is_alive(), "the worker ends")

    def test_a_node_knows_the_capacity_before_the_tools(self) -> None:
        kinds = []
        self.addCleanup(self.worker.stop)
        serving = threading.Thread(target=lambda: asyncio.run(self.worker.serve(self.node.address, drain=1)))
        serving.start()
        while "announce" not in kinds:
            frame = self.node.frames.get(timeout=SOON)
            kinds.append(frame.WhichOneof("frame"))
            if kinds[-1] == "load":
                self.assertGreater(frame.load.capacity, 0)
        self.assertEqual(kinds, ["hello", "load", "announce"])
        self.worker.stop()
        self.node.wait_for("goodbye")
        self.node.close()
        serving.join(SOON)
        self.assertFalse(serving.is_alive(), "the worker ends")

    def test_a_tool_that_blocks_its_loop_stops_no_link(self) -> None:
        begun, release = threading.Event(), threading.Event()
        self.addCleanup(release.set)

        @self.worker.tool()
        async def stuck() -> str:
            begun.set()
            release.wait(SOON)
            return "released"

        @self.worker.tool()
        def plain(ctx: Context) -> str:
            return "in time" if ctx.remaining > 0 else "late"

        @self.worker.tool()
        async def reports(ctx: Context) -> str:
            await ctx.progress(1)
            return "reported"

        self.serve()
        with self.assertLogs("shoal_worker", logging.WARNING) as logged:
            self.node.call(1, "stuck")
            self.assertTrue(begun.wait(SOON))
            for nonce in (7, 8):
                self.node.say(ping=link_pb2.Ping(nonce=nonce))
                self.node.wait_for("pong", lambda pong: pong.nonce == nonce)
            self.node.call(2, "plain")
            self.assertEqual(self.node.result(2), "in time")
            self.node.call(3, "reports")
            self.node.wait_for("accepted", lambda said: said.flight == 3)
            end = time.monotonic() + SOON
            while not logged.records and time.monotonic() < end:
                time.sleep(0.01)
            release.set()
            results = {flight: self.node.result(flight) for flight in (1, 3)}
        self.assertEqual(results, {1: "released", 3: "reported"})
        self.assertIn("tool stuck blocks the event loop", logged.output[0])
        self.assertIn(os.path.basename(threading.__file__), logged.output[0])

    def test_a_cancelled_tool_ends_before_its_place_is_free(self) -> None:
        begun, cancelled = threading.Event(), threading.Event()

        @self.worker.tool()
        async def waits() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        self.serve()
        self.node.call(1, "waits")
        self.assertTrue(begun.wait(SOON))
        self.node.wait_for("load", lambda load: load.running == 1)
        self.node.say(cancel=worker_pb2.Cancel(flight=1))
        self.node.wait_for("load", lambda load: load.running == 0)
        self.assertTrue(cancelled.is_set())

    def test_a_question_that_the_tool_gives_up_is_taken_back(self) -> None:
        give_up = threading.Event()
        self.addCleanup(give_up.set)

        @self.worker.tool()
        async def asks(ctx: Context) -> str:
            asking = asyncio.ensure_future(ctx.elicit("How many?", {"type": "object"}))
            await asyncio.to_thread(give_up.wait, SOON)
            asking.cancel()
            await asyncio.wait([asking])
            return "given up"

        self.serve()
        self.node.call(1, "asks")
        ask = self.node.wait_for("event", lambda event: event.HasField("ask")).ask.ask
        give_up.set()
        withdrawn = self.node.wait_for("event", lambda event: event.HasField("withdrawn"))
        self.assertEqual(withdrawn.withdrawn.ask, ask)
        self.assertEqual(self.node.result(1), "given up")

    def test_no_proxy_is_asked_for_a_node(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as proxy:
            proxy.setblocking(False)
            environment = {"http_proxy": f"http://127.0.0.1:{proxy.getsockname()[1]}", "no_proxy": "", "no_grpc_proxy": ""}
            with mock.patch.dict(os.environ, environment):
                self.serve()
            with self.assertRaises(BlockingIOError):
                proxy.accept()


if __name__ == "__main__":
    unittest.main()
