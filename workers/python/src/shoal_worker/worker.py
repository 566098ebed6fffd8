"""A worker: its tools, and its life."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from . import _tools
from ._dial import Dialer
from ._loops import links_loop, run_on, watch
from ._proto.shoal.types.v1 import call_pb2
from ._proto.shoal.worker.v1 import worker_pb2
from ._record import Record
from ._runtime import Runtime
from ._tools import Tool
from .context import Context
from .settings import Limits, Tls

log = logging.getLogger("shoal_worker")

Function = TypeVar("Function", bound=Callable[..., Any])
DRAIN_SECONDS = 30.0


class Worker:
    """The tools of one pool. All workers of a pool must offer the same tools."""

    def __init__(
        self,
        pool: str | None = None,
        *,
        version: str = "0",
        instructions: str | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.pool = pool or os.environ.get("SHOAL_POOL") or "python"
        self.version = version
        self.instructions = instructions
        self.limits = limits or Limits()
        self._tools: dict[str, Tool] = {}
        self._generation = 0
        self._stop: Callable[[], object] | None = None

    def tool(
        self,
        function: Function | None = None,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        input_schema: dict[str, Any] | None = None,
        read_only: bool | None = None,
        destructive: bool | None = None,
        idempotent: bool | None = None,
        open_world: bool | None = None,
    ) -> Any:
        """Makes a function a tool.

        With `read_only` or `idempotent`, Shoal may run a call again after its worker was lost. Other calls run at most
        once.
        """

        def add(function: Function) -> Function:
            tool = Tool(
                function,
                name=name,
                title=title,
                description=description,
                input_schema=input_schema,
                readOnly=read_only,
                destructive=destructive,
                idempotent=idempotent,
                openWorld=open_world,
            )
            self._tools[tool.name] = tool
            self._generation += 1
            return function

        return add if function is None else add(function)

    def run(self, join: str | Iterable[str] | None = None, *, tls: Tls | None = None, drain: float = DRAIN_SECONDS) -> None:
        """Serves until SIGTERM or SIGINT; then calls may finish within `drain` seconds."""

        async def serve() -> None:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                # Wakes the loop. The second handler runs even while a tool blocks the loop.
                loop.add_signal_handler(number, self.stop)
                signal.signal(number, lambda *_: self.stop())
            await self.serve(join, tls=tls, drain=drain)

        asyncio.run(serve())

    def stop(self) -> None:
        """Begins to leave. Callable from any thread."""
        if self._stop is not None:
            self._stop()

    async def serve(
        self, join: str | Iterable[str] | None = None, *, tls: Tls | None = None, drain: float = DRAIN_SECONDS
    ) -> None:
        """Joins the nodes and serves until `stop`. `join` names nodes (`host:port`); the default is SHOAL_JOIN.

        Async tools run on the awaiting loop; plain functions and links run in threads.
        """
        seeds = join or os.environ.get("SHOAL_JOIN") or ""
        seeds = [seed.strip() for seed in (seeds.split(",") if isinstance(seeds, str) else seeds) if seed.strip()]
        if not seeds:
            raise ValueError("no node to join: name one (host:port), or set SHOAL_JOIN")
        tls = tls or Tls.from_environment()
        if tls is not None:
            # Report this at once, because it would break every link.
            tls.check()
        tools, stop = asyncio.get_running_loop(), asyncio.Event()
        async with links_loop() as links:
            for loop in (tools, links):
                # Plain functions may run in as many threads as calls may run.
                loop.set_default_executor(ThreadPoolExecutor(self.limits.concurrency, thread_name_prefix="shoal-tool"))
            self._stop = lambda: links.call_soon_threadsafe(stop.set)
            watching = watch(tools, threading.get_ident())
            try:
                await run_on(links, self._join(seeds, tls, drain, tools, stop, watching))
            finally:
                self._stop = None

    async def _join(
        self,
        seeds: list[str],
        tls: Tls | None,
        drain: float,
        tools: asyncio.AbstractEventLoop,
        stop: asyncio.Event,
        watching: Coroutine[Any, Any, None],
    ) -> None:
        """Keeps the links until `stop`, on their own loop."""

        async def call(record: Record) -> call_pb2.CallOutcome:
            return await _tools.run(self._tools, record.call, Context(record, runtime.places), tools)

        runtime = Runtime(self._name(), self.pool, self.limits, self._catalog, call)
        dialer = Dialer(runtime, seeds, tls)
        tasks = [asyncio.create_task(work) for work in (dialer.run(), runtime.sweep(), watching)]
        try:
            await stop.wait()
            log.info("leaving; %d calls are open", runtime.open_calls())
            await dialer.leave(drain)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _name(self) -> str:
        base = os.environ.get("SHOAL_WORKER") or socket.gethostname()
        return f"{self.pool}@{base}-{secrets.token_hex(4)}"

    def _catalog(self) -> worker_pb2.Catalog:
        info = {"name": self.pool, "version": self.version}
        return worker_pb2.Catalog(
            server_info=json.dumps(info).encode(),
            instructions=self.instructions,
            capabilities=json.dumps({"tools": {}, "logging": {}}).encode(),
            tools=[json.dumps(tool.definition, ensure_ascii=False).encode() for tool in list(self._tools.values())],
            tools_generation=self._generation,
        )
