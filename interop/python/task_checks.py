"""Checks of tasks, against the fixtures of the conformance suite (`shoal serve --conformance`)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import mcp_types as types
from mcp import Client, MCPError

from common import Checks, call, text_of
from harness import Failure, expect, expect_equal
from tasks import (
    IDENTIFIER,
    NewTask,
    Task,
    TasksExtension,
    answer,
    cancel,
    get,
    listening,
    pause,
    update,
)

ARRIVAL_SECONDS = 15
"""How long news of a task may take: the server asks for each every ten seconds, whatever it has heard."""


class TaskChecks(Checks):
    """Checks of tasks for a client of 2026-07-28."""

    async def offered(self) -> None:
        extensions = self.client.server_capabilities.extensions or {}
        expect(IDENTIFIER in extensions, f"offered: {sorted(extensions)}")

    async def short_call_is_no_task(self) -> None:
        async with self._begun(0):
            expect_equal(await call(self.client, "greet", name="Ada"), "Hello, Ada!", "text")

    async def completes(self) -> None:
        async with self._begun(1):
            text = await call(self.client, "slow_compute", seconds=1, label="sum")
        expect_equal(text, 'Computed "sum" in 1 s.', "text")

    async def completes_with_is_error(self) -> None:
        async with self._begun(1):
            result = await self.client.call_tool("failing_job", {})
        expect(result.is_error, "isError is not set")
        expect_equal(text_of(result), "The job failed.", "text")

    async def fails_with_a_protocol_error(self) -> None:
        async with self._begun(1):
            await _refused(types.INTERNAL_ERROR, self.client.call_tool("protocol_error_job", {}))
        task = await get(self.client.session, self._tasks.begun[-1])
        expect_equal(task.status, "failed", "status")
        expect("The job is broken." in task.error.message, f"odd message {task.error.message!r}")

    async def is_cancelled(self) -> None:
        new = await self._begin("slow_compute", seconds=60)
        expect_equal(new.status, "working", "status")
        await cancel(self.client.session, new.task_id)
        task = await self._until(new, lambda task: task.is_over)
        expect_equal((task.status, task.result, task.error), ("cancelled", None, None), "end")

    async def asks_while_it_runs(self) -> None:
        self.peer.form_answer = types.ElicitResult(action="accept", content={"confirm": True})
        async with self._begun(1):
            text = await call(self.client, "confirm_delete", filename="a.txt")
        expect_equal(text, "Deleted a.txt.", "text")
        expect_equal(self.peer.forms[-1].message, "Delete a.txt?", "question")

    async def questions_are_answered_one_by_one(self) -> None:
        session = self.client.session
        self.peer.form_answer = types.ElicitResult(action="accept", content={"name": "Ada"})
        new = await self._begin("multi_input")
        asking = await self._until(new, lambda task: len(task.input_requests or {}) == 2)
        expect_equal(asking.status, "input_required", "status")
        (first, question), (second, _) = asking.input_requests.items()
        await answer(session, new.task_id, first, question)
        left = await self._until(new, lambda task: len(task.input_requests or {}) < 2)
        expect_equal((left.status, list(left.input_requests)), ("input_required", [second]), "what is left")
        await update(session, new.task_id, {second: types.ElicitResult(action="decline")})
        task = await self._until(new, lambda task: task.is_over)
        expect_equal(text_of(task.result), "1 of 2 questions were answered.", "text")

    async def asks_before_it_is_a_task(self) -> None:
        self.peer.form_answer = types.ElicitResult(action="accept", content={"name": "Ada"})
        async with self._begun(1):
            text = await call(self.client, "test_tool_with_task")
        expect_equal(text, "Worked for Ada.", "text")

    async def news_of_tasks(self) -> None:
        new = await self._begin("confirm_delete", filename="b.txt")
        # The tool asks after a second; the earlier notifications depend on when the stream was opened.
        async with listening(self.client.session, new.task_id, "no-such-task"):
            acknowledged = await self._acknowledged()
            expect_equal(acknowledged, [new.task_id], "tasks that are listened to")
            asking = await self._told(new, "input_required")
            (key,) = asking.input_requests
            await update(self.client.session, new.task_id, {key: types.ElicitResult(action="decline")})
            ended = await self._told(new, "completed")
        expect_equal(text_of(ended.result), "Kept b.txt.", "text")

    async def another_client_gets_the_result(self) -> None:
        new = await self._begin("slow_compute", seconds=1.5, label="later")
        async with self._another(TasksExtension()) as client:
            task = await get(client.session, new.task_id)
            while not task.is_over:
                await pause(task)
                task = await get(client.session, new.task_id)
        expect_equal(text_of(task.result), 'Computed "later" in 1.5 s.', "text")

    async def unknown_task(self) -> None:
        await _refused(types.INVALID_PARAMS, get(self.client.session, "no-such-task"))

    async def without_the_extension(self) -> None:
        new = await self._begin("slow_compute", seconds=1)
        async with self._another() as client:
            await _refused(types.MISSING_REQUIRED_CLIENT_CAPABILITY, get(client.session, new.task_id))
            await _refused(types.MISSING_REQUIRED_CLIENT_CAPABILITY, client.call_tool("failing_job", {}))
            text = await call(client, "slow_compute", seconds=1, label="plain")
        expect_equal(text, 'Computed "plain" in 1 s.', "text")

    @property
    def _tasks(self) -> TasksExtension:
        (extension,) = self.client.extensions
        return extension

    @asynccontextmanager
    async def _begun(self, tasks: int) -> AsyncIterator[None]:
        """This many calls become tasks inside the block."""
        before = len(self._tasks.begun)
        yield
        expect_equal(len(self._tasks.begun) - before, tasks, "calls that became tasks")

    async def _begin(self, tool: str, **arguments: object) -> NewTask:
        """Calls a tool and returns its task."""
        new = await self.client.session.call_tool(tool, arguments, allow_claimed=True)
        expect(isinstance(new, NewTask), f"{tool} did not become a task: {new}")
        return new

    async def _until(self, new: NewTask, arrived) -> Task:
        """The task as soon as `arrived` accepts it, or at its end."""
        while True:
            task = await get(self.client.session, new.task_id)
            if arrived(task) or task.is_over:
                return task
            await pause(task)

    async def _acknowledged(self) -> list[str]:
        """The tasks in the server's acknowledgement."""
        await self.peer.wait_for("the acknowledgement", lambda: self.peer.acknowledged)
        return self.peer.acknowledged.pop().model_dump(by_alias=True)["taskIds"]

    async def _told(self, new: NewTask, status: str) -> Task:
        """Waits for a notification with this status of the task."""
        with anyio.move_on_after(ARRIVAL_SECONDS):
            while True:
                task = await self._tasks.next_told()
                if (task.task_id, task.status) == (new.task_id, status):
                    return task
        raise Failure(f"nothing told of {status} within {ARRIVAL_SECONDS} s")

    @asynccontextmanager
    async def _another(self, *extensions: TasksExtension) -> AsyncIterator[Client]:
        """A client with its own connection."""
        async with Client(self.client.server, read_timeout_seconds=20, extensions=extensions) as client:
            yield client


async def _refused(code: int, request) -> None:
    """Fails the check unless the request is refused with the JSON-RPC error `code`."""
    try:
        await request
    except MCPError as error:
        expect_equal(error.code, code, "error code")
    else:
        raise Failure(f"expected error {code}, but it succeeded")
