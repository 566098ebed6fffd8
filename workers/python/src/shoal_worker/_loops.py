"""Two event loops: the caller's runs tools, and another thread's runs links, so that a blocking tool stops no link."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import sys
import threading
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

log = logging.getLogger("shoal_worker")

Result = TypeVar("Result")
BLOCKED_SECONDS = 1.0
LAST_SECONDS = 3.0
TOOL = "tool "
"""Begins the names of the tasks that run tools."""


async def run_on(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Result], name: str | None = None) -> Result:
    """Runs `work` on another thread's loop. A cancellation cancels `work` and waits for its end."""
    here = asyncio.get_running_loop()
    ended: asyncio.Future[None] = here.create_future()
    tasks: list[asyncio.Task[Result]] = []

    def begin() -> None:
        task = loop.create_task(work, name=name)
        tasks.append(task)
        task.add_done_callback(end)

    def end(_task: asyncio.Task[Result]) -> None:
        # A closed loop has no waiting caller.
        with contextlib.suppress(RuntimeError):
            here.call_soon_threadsafe(ended.set_result, None)

    try:
        loop.call_soon_threadsafe(begin)
    except RuntimeError:
        work.close()
        raise
    cancelled = False
    while not ended.done():
        try:
            await asyncio.shield(ended)
        except asyncio.CancelledError:
            cancelled = True
            loop.call_soon_threadsafe(lambda: tasks[0].cancel())
    (task,) = tasks
    if cancelled:
        # Reading the exception keeps asyncio from reporting it as unseen.
        _ = task.cancelled() or task.exception()
        raise asyncio.CancelledError
    return task.result()


@contextlib.asynccontextmanager
async def links_loop() -> AsyncIterator[asyncio.AbstractEventLoop]:
    """A loop in its own thread, with the caller's context variables."""
    loop = asyncio.new_event_loop()
    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(loop.run_forever,), name="shoal-links", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        try:
            await run_on(loop, _end_tasks())
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


async def _end_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=LAST_SECONDS)


async def watch(tools: asyncio.AbstractEventLoop, thread: int) -> None:
    """Warns once whenever something blocks the tools' loop."""
    here = asyncio.get_running_loop()
    while True:
        turn = asyncio.Event()
        asked = here.time()
        tools.call_soon_threadsafe(here.call_soon_threadsafe, turn.set)
        try:
            await asyncio.wait_for(turn.wait(), BLOCKED_SECONDS)
        except asyncio.TimeoutError:
            blocker, place = _blocker(tools), _place(thread)
            advice = "async tools wait for it: await what takes long, or make the tool a plain function, which runs in a thread"
            log.warning("%s blocks the event loop, at %s. All %s", blocker, place, advice)
            await turn.wait()
            log.warning("%s blocked the event loop for %.1f s", blocker, here.time() - asked)
        await asyncio.sleep(BLOCKED_SECONDS)


def _blocker(loop: asyncio.AbstractEventLoop) -> str:
    task = asyncio.current_task(loop)
    if task is None:
        return "a callback"
    name = task.get_name()
    return name if name.startswith(TOOL) else f"the task {getattr(task.get_coro(), '__qualname__', name)}"


def _place(thread: int) -> str:
    frame = sys._current_frames().get(thread)
    return "an unknown place" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
