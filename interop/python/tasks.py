"""The extension io.modelcontextprotocol/tasks, as a client of the Python SDK.

The SDK gives an extension these means, and each is used here:

* `ClientExtension` declares it in the capabilities of each request.
* `ResultClaim` takes `resultType: "task"` as the answer to `tools/call`. Its `resolve` makes the tool's result of it, so
  that `Client.call_tool` returns what it would have without a task.
* `Request.name_param` repeats the task's id in the header `Mcp-Name`.
* `ClientSession.dispatch_input_request` gives what a task asks to the callbacks that answer every question.
* `NotificationBinding` takes `notifications/tasks`.

It has nothing more of tasks: their requests, results and the waiting for their end are written here. Its types named
`Task…` are those of 2025-11-25, which had other requests. `Client.listen` has no `taskIds`, so that the request is
sent by hand; the SDK's filter keeps members that it does not know.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.client.extension import ClaimContext, ClientExtension, NotificationBinding, ResultClaim
from mcp.client.session import ClientRequestContext, ClientSession

IDENTIFIER = "io.modelcontextprotocol/tasks"
PAUSE_SECONDS = 0.2
"""Between two questions for a task where the server names no time."""


class NewTask(types.Result):
    """The answer to `tools/call` if the call has become a task."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: types.TaskStatus
    poll_interval_ms: int | None = None


class Task(types.Result):
    """A task in `tasks/get` and `notifications/tasks`."""

    result_type: str | None = None
    task_id: str
    status: types.TaskStatus
    created_at: str
    last_updated_at: str
    poll_interval_ms: int | None = None
    input_requests: types.InputRequests | None = None
    result: types.CallToolResult | None = None
    error: types.ErrorData | None = None

    @property
    def is_over(self) -> bool:
        return self.status in ("completed", "failed", "cancelled")


class About(types.RequestParams):
    task_id: str


class Answers(About):
    input_responses: types.InputResponses


class GetTask(types.Request[About, Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    params: About
    name_param = "taskId"


class UpdateTask(types.Request[Answers, Literal["tasks/update"]]):
    method: Literal["tasks/update"] = "tasks/update"
    params: Answers
    name_param = "taskId"


class CancelTask(types.Request[About, Literal["tasks/cancel"]]):
    method: Literal["tasks/cancel"] = "tasks/cancel"
    params: About
    name_param = "taskId"


class Cancelled(Exception):
    """The task was cancelled and has no result."""


async def get(session: ClientSession, task_id: str) -> Task:
    """The task's present state."""
    return await session.send_request(GetTask(params=About(task_id=task_id)), Task)


async def update(session: ClientSession, task_id: str, responses: types.InputResponses) -> None:
    """Answers some questions of a task."""
    params = Answers(task_id=task_id, input_responses=responses)
    await session.send_request(UpdateTask(params=params), types.EmptyResult)


async def cancel(session: ClientSession, task_id: str) -> None:
    """Cancels a task."""
    await session.send_request(CancelTask(params=About(task_id=task_id)), types.EmptyResult)


async def pause(task: Task | NewTask) -> None:
    """Waits for the server's poll interval."""
    interval = task.poll_interval_ms
    await anyio.sleep(PAUSE_SECONDS if interval is None else interval / 1000)


class TasksExtension(ClientExtension):
    """Accepts tasks, answers their questions, and records them."""

    identifier = IDENTIFIER

    def __init__(self) -> None:
        self.begun: list[str] = []
        """The ids of the calls that became tasks and were resolved here."""
        self._send_told, self._told = anyio.create_memory_object_stream[Task](100)

    def claims(self) -> list[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=NewTask, resolve=self._resolve)]

    def notifications(self) -> list[NotificationBinding[Any]]:
        return [NotificationBinding(method="notifications/tasks", params_type=Task, handler=self._send_told.send)]

    async def next_told(self) -> Task:
        """The next notification about a task."""
        return await self._told.receive()

    async def _resolve(self, new: NewTask, context: ClaimContext) -> types.CallToolResult:
        self.begun.append(new.task_id)
        answered: set[str] = set()
        task = await get(context.session, new.task_id)
        while not task.is_over:
            # A question stays open until the tool has its answer, so it may be seen twice.
            for key, request in (task.input_requests or {}).items():
                if key not in answered:
                    answered.add(key)
                    await answer(context.session, task.task_id, key, request)
            await pause(task)
            task = await get(context.session, new.task_id)
        if task.error is not None:
            raise MCPError.from_error_data(task.error)
        if task.result is None:
            raise Cancelled(task.task_id)
        return task.result


async def answer(session: ClientSession, task_id: str, key: str, request: types.InputRequest) -> None:
    """Answers one question of a task with the client's callback."""
    context = ClientRequestContext(session=session, request_id=key)
    response = await session.dispatch_input_request(context, request)
    if isinstance(response, types.ErrorData):
        raise MCPError.from_error_data(response)
    await update(session, task_id, {key: response})


@asynccontextmanager
async def listening(session: ClientSession, *task_ids: str) -> AsyncIterator[None]:
    """Subscribes to tasks while the context is open."""
    filters = types.SubscriptionFilter.model_validate({"taskIds": list(task_ids)})
    request = types.SubscriptionsListenRequest(params=types.SubscriptionsListenRequestParams(notifications=filters))
    async with anyio.create_task_group() as group:
        # The response comes at the stream's end, and leaving the request closes the stream.
        group.start_soon(session.send_request, request, types.SubscriptionsListenResult)
        yield
        group.cancel_scope.cancel()
