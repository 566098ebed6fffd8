"""A link to one node, which is dialled again when it breaks."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from typing import TYPE_CHECKING, Any

import grpc

from ._flight import Flight
from ._ledger import Refused
from ._proto.shoal.types.v1 import call_pb2, link_pb2
from ._proto.shoal.worker.v1 import worker_pb2
from . import errors

if TYPE_CHECKING:
    from ._runtime import Runtime
    from .settings import Tls

log = logging.getLogger("shoal_worker")

METHOD = "/shoal.worker.v1.WorkerLink/Link"
VERSIONS = link_pb2.Versions(lowest=3, highest=4)
LONGEST_MESSAGE = 128 * 1024
LONGEST_WHOLE = 64 * 1024
"""A frame that is longer goes in fragments of half of this."""
LANES = 8
"""Frames that may be under way in fragments at a time, in each direction."""
WAITING = 64
"""Messages that may wait to be sent."""
PING_AFTER = 2.0
PING_TIMEOUT = 3.0
HANDSHAKE_TIMEOUT = 3.0
TICK = 0.05
"""How often the load is looked at."""
BACKOFF = (0.05, 2.0)


class Broken(Exception):
    """The link has ended."""


class Link:
    """A link to the node at one address."""

    def __init__(self, runtime: Runtime, address: str, tls: Tls | None) -> None:
        self.runtime = runtime
        self.address = address
        self.node: str | None = None
        """The node there, once it has been reached."""
        self.connected = False
        self.nodes: list[link_pb2.Node] = []
        self.longest_frame = 0
        self.flights: dict[int, Flight] = {}
        self._tls = tls
        self._credit = 0
        self._out: asyncio.Queue[worker_pb2.WorkerFrame | None] = asyncio.Queue(WAITING)
        self._lanes = asyncio.Semaphore(LANES)
        self._parts: dict[int, bytearray] = {}
        self._heard = 0.0
        self._parted = False

    async def run(self) -> None:
        """Keeps the link until it is cancelled or the worker has said goodbye."""
        pause = BACKOFF[0]
        told = ""
        while not self._parted:
            try:
                await self._connect()
                reason = "it ended"
            except (Broken, OSError) as error:
                reason = str(error)
            except grpc.RpcError as error:
                details = getattr(error, "details", lambda: str(error))
                reason = str(details())
            if self.connected:
                pause = BACKOFF[0]
                told = ""
                log.info("the link to node %s at %s ended: %s", self.node, self.address, reason)
            elif reason != told:
                # Log each reason once, because the retries continue.
                told = reason
                log.warning("no link to %s: %s", self.address, reason)
            self._end()
            if not self._parted:
                await asyncio.sleep(pause * random.uniform(0.5, 1))
                pause = min(pause * 2, BACKOFF[1])

    def _end(self) -> None:
        self.connected = False
        flights, self.flights = list(self.flights.values()), {}
        for flight in flights:
            flight.close()

    async def _connect(self) -> None:
        options: list[tuple[str, Any]] = [
            ("grpc.max_receive_message_length", LONGEST_MESSAGE),
            ("grpc.use_local_subchannel_pool", 1),
            # Nodes are inside the cluster, so ignore the environment's proxy.
            ("grpc.enable_http_proxy", 0),
        ]
        if self._tls is not None:
            options.append(("grpc.ssl_target_name_override", self._tls.name))
            channel = grpc.aio.secure_channel(self.address, self._tls.credentials(), options)
        else:
            channel = grpc.aio.insecure_channel(self.address, options)
        self._out, self._lanes = asyncio.Queue(WAITING), asyncio.Semaphore(LANES)
        self._parts.clear()
        async with channel:
            dial = channel.stream_stream(
                METHOD,
                request_serializer=worker_pb2.WorkerFrame.SerializeToString,
                response_deserializer=worker_pb2.NodeFrame.FromString,
            )
            await self._drive(dial())

    async def _write(self, stream: Any) -> None:
        while (frame := await self._out.get()) is not None:
            await stream.write(frame)
        await stream.done_writing()

    async def _drive(self, stream: Any) -> None:
        hello = worker_pb2.Hello(
            versions=VERSIONS,
            worker=self.runtime.name,
            incarnation=self.runtime.ledger.incarnation,
            limits=link_pb2.Limits(frame_bytes=self.runtime.limits.frame_bytes),
            ledger=self.runtime.ledger.number,
        )
        await stream.write(worker_pb2.WorkerFrame(hello=hello))
        try:
            first = await asyncio.wait_for(stream.read(), HANDSHAKE_TIMEOUT)
        except asyncio.TimeoutError:
            raise Broken("no welcome came") from None
        if first is grpc.aio.EOF or first.WhichOneof("frame") != "welcome":
            # Raises the reason of a refusal.
            await stream.code()
            raise Broken(f"the first frame is no welcome: {await stream.details()}")
        self._welcome(first.welcome)
        # The load goes first, because a node refuses calls until it knows the worker's capacity.
        load = self.runtime.load()
        await self.send(0, load=load)
        helpers = [asyncio.create_task(self._write(stream)), asyncio.create_task(self._tick(stream, load))]
        try:
            await self.announce()
            while (frame := await stream.read()) is not grpc.aio.EOF:
                self._heard = time.monotonic()
                await self._handle(frame)
        finally:
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)
            stream.cancel()

    def _welcome(self, welcome: worker_pb2.Welcome) -> None:
        if not VERSIONS.lowest <= welcome.version <= VERSIONS.highest:
            raise Broken(f"the node speaks version {welcome.version}, which was not offered")
        self.node, self.nodes = welcome.node, list(welcome.nodes)
        self.longest_frame = welcome.limits.frame_bytes or 16 * 1024 * 1024
        self._credit = welcome.limits.credit_bytes or 256 * 1024
        self._heard = time.monotonic()
        self.connected = True
        self.runtime.links_changed.set()
        log.info("joined node %s at %s", self.node, self.address)

    async def announce(self) -> None:
        """Sends the worker's offers."""
        said = worker_pb2.Announce(
            pool=self.runtime.pool, catalog=self.runtime.catalog(), draining=self.runtime.draining
        )
        await self.send(0, announce=said)

    async def _tick(self, stream: Any, reported: worker_pb2.Load) -> None:
        """Reports changes of the load, and checks whether the node is alive."""
        asked, last = False, time.monotonic()
        while True:
            load = self.runtime.load()
            if load != reported:
                reported = load
                await self.send(0, load=load)
            await asyncio.sleep(TICK)
            now = time.monotonic()
            if now - last > PING_AFTER:
                # This process was suspended, so the silence says nothing about the node.
                self._heard = now
            last = now
            silent = now - self._heard
            if silent > PING_AFTER + PING_TIMEOUT:
                log.info("node %s says nothing", self.node)
                stream.cancel()
                return
            if silent <= PING_AFTER:
                asked = False
            elif not asked:
                asked = True
                await self.send(0, ping=link_pb2.Ping(nonce=time.time_ns() // 1000))

    async def send(self, flight: int, **kind: Any) -> None:
        """Sends a frame, in fragments if it is long. Frames of one flight must not be sent concurrently."""
        frame = worker_pb2.WorkerFrame(**kind)
        if frame.ByteSize() <= LONGEST_WHOLE:
            await self._out.put(frame)
            return
        encoded, size = frame.SerializeToString(), LONGEST_WHOLE // 2
        async with self._lanes:
            for at in range(0, len(encoded), size):
                part = link_pb2.Fragment(flight=flight, data=encoded[at : at + size], last=at + size >= len(encoded))
                await self._out.put(worker_pb2.WorkerFrame(fragment=part))

    async def _send_now(self, **kind: Any) -> None:
        await self._out.put(worker_pb2.WorkerFrame(**kind))

    async def _handle(self, frame: worker_pb2.NodeFrame) -> None:
        kind = frame.WhichOneof("frame")
        if kind == "batch":
            for one in frame.batch.frames:
                await self._handle(one)
        elif kind == "fragment":
            whole = self._put_together(frame.fragment)
            if whole is not None:
                await self._handle(worker_pb2.NodeFrame.FromString(whole))
        elif kind == "ping":
            pong = link_pb2.Pong(nonce=frame.ping.nonce, clock_us=time.time_ns() // 1000)
            await self._send_now(pong=pong)
        elif kind == "close":
            # Ending the stream answers the close.
            await self._out.put(None)
        elif kind == "start":
            await self._start(frame.start)
        elif kind == "attach":
            await self._attach(frame.attach)
        elif kind in ("answer", "cancel", "detach", "credit"):
            said = getattr(frame, kind)
            flight = self.flights.get(said.flight)
            if flight is not None:
                self._steer(flight, kind, said)
        elif kind == "nodes":
            self.nodes = list(frame.nodes.nodes)
            self.runtime.links_changed.set()
        elif kind == "acknowledge":
            for call in frame.acknowledge.calls:
                self.runtime.acknowledge(bytes(call))
        elif kind == "end_session":
            self.runtime.end_session(frame.end_session.session)
        elif kind == "subscribe":
            error = errors.RpcError(errors.METHOD_NOT_FOUND, "this worker has no resources").to_proto()
            said = worker_pb2.Subscribed(request=frame.subscribe.request, error=error)
            await self._send_now(subscribed=said)

    def _put_together(self, fragment: link_pb2.Fragment) -> bytes | None:
        if fragment.flight not in self._parts and len(self._parts) >= LANES:
            raise Broken(f"more than {LANES} frames in fragments at a time")
        parts = self._parts.setdefault(fragment.flight, bytearray())
        parts += fragment.data
        if len(parts) > self.runtime.limits.frame_bytes:
            raise Broken("a frame that is too long")
        return bytes(self._parts.pop(fragment.flight)) if fragment.last else None

    async def _start(self, start: worker_pb2.Start) -> None:
        try:
            record = self.runtime.start(start.call, self._parted)
        except Refused as refused:
            await self._refuse(start.flight, refused.failure)
        else:
            self._open(start.flight, record, 0, 0)

    async def _attach(self, attach: worker_pb2.Attach) -> None:
        record = self.runtime.find(bytes(attach.call))
        if record is None:
            await self._refuse(attach.flight, errors.outcome_unknown("its worker does not know it any more"))
        elif not self._open(attach.flight, record, attach.after, attach.reader):
            await self.send(attach.flight, lost=worker_pb2.Lost(flight=attach.flight, replaced=True))

    def _open(self, number: int, record: Any, after: int, name: int) -> bool:
        flight = Flight(self, number, record, self._credit)
        if not record.attach(flight, after, name):
            return False
        self.flights[number] = flight
        flight.start()
        return True

    async def _refuse(self, flight: int, failure: call_pb2.CallFailure) -> None:
        await self.send(flight, refused=worker_pb2.Refused(flight=flight, failure=failure))

    def _steer(self, flight: Flight, kind: str, said: Any) -> None:
        if kind == "answer":
            flight.answer(said.ask, said.outcome)
        elif kind == "cancel":
            flight.cancel()
        elif kind == "credit":
            flight.grant(said.bytes)
        elif said.steering:
            flight.detach()
        else:
            self.drop(flight)
            flight.close()

    def drop(self, flight: Flight) -> None:
        self.flights.pop(flight.number, None)

    def is_read(self) -> bool:
        """Whether a flight waits for events."""
        return any(flight.reading for flight in self.flights.values())

    async def part(self) -> None:
        """Says goodbye. Starts are refused until the node ends the link."""
        self._parted = True
        if self.connected:
            await self._send_now(goodbye=worker_pb2.Goodbye())
