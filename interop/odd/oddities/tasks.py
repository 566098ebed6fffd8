"""Tasks that servers make of calls: those of 2025-11-25, and the extension of 2026-07-28.

The clients do not know tasks, so each class says what Shoal must return.
"""

from __future__ import annotations

import os
import time
from typing import Any

from plain import FAILS, LEGACY, MODERN, TOOLS, Json, Plain, Refused

RUNS_SECONDS = 1.0
DONE = {"call": {"content": [{"type": "text", "text": "done"}]}}
RESULT: Json = {"content": [{"type": "text", "text": "done"}]}


class _Tasks(Plain):
    """Each call becomes a task that runs for a while."""

    expected = DONE
    waits = ("tasks/result",)
    began = 0.0

    def capabilities(self) -> Json:
        if self.era == LEGACY:
            return {**super().capabilities(), "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}
        return {**super().capabilities(), "extensions": {"io.modelcontextprotocol/tasks": {}}}

    def tools(self, cursor: str | None) -> Any:
        execution = {"execution": {"taskSupport": "required"}} if self.era == LEGACY else {}
        return {"tools": [{**tool, **execution} for tool in TOOLS]}

    def is_over(self) -> bool:
        return time.monotonic() >= self.began + RUNS_SECONDS

    def task(self) -> Json:
        stamps = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}
        interval = {"ttl": 60_000, "pollInterval": 100} if self.era == LEGACY else {"ttlMs": 60_000, "pollIntervalMs": 100}
        return {"taskId": "one", "status": "completed" if self.is_over() else "working", **stamps, **interval}

    def called(self, params: Json) -> Any:
        self.began = time.monotonic()
        task = self.task()
        return {"task": task} if self.era == LEGACY else {"resultType": "task", **task}

    def result(self, method: str, params: Json) -> Any:
        match method:
            case "tasks/get":
                return self.asked()
            case "tasks/result" if self.era == LEGACY:
                return self.end()
            case "tasks/cancel":
                return self.task()
        return super().result(method, params)

    def asked(self) -> Any:
        """`tasks/get`"""
        task = self.task()
        return {**task, "result": RESULT} if self.era == MODERN and self.is_over() else task

    def end(self) -> Any:
        """`tasks/result`"""
        time.sleep(max(0.0, self.began + RUNS_SECONDS - time.monotonic()))
        return RESULT


class Tasks(_Tasks):
    """A call becomes a task."""


class TaskWithoutId(_Tasks):
    """A task has no id."""

    expected = {"call": FAILS}

    def task(self) -> Json:
        return {name: value for name, value in super().task().items() if name != "taskId"}


class TaskIdNumber(_Tasks):
    """The id of a task is a number."""

    def task(self) -> Json:
        return {**super().task(), "taskId": 1}


class TaskIdEmpty(_Tasks):
    """The id of a task is empty."""

    def task(self) -> Json:
        return {**super().task(), "taskId": ""}


class TaskStatusOnly(_Tasks):
    """A task has an id and a status, and says nothing of times."""

    def task(self) -> Json:
        whole = super().task()
        return {name: whole[name] for name in ("taskId", "status")}


class TaskOverAtOnce(_Tasks):
    """A task is over when it is told of."""

    def is_over(self) -> bool:
        return True


class TaskIgnored(_Tasks):
    """A call is answered at once, though its tool needs tasks."""

    def called(self, params: Json) -> Any:
        return RESULT


class TaskResultRefused(_Tasks):
    """`tasks/result` is refused while the task runs, instead of waiting for it."""

    eras = (LEGACY,)

    def end(self) -> Any:
        if not self.is_over():
            raise Refused(-32602, "Task is not completed")
        return RESULT


class TaskResultWorking(_Tasks):
    """`tasks/result` is answered with the task while it runs."""

    eras = (LEGACY,)

    def end(self) -> Any:
        return RESULT if self.is_over() else {"task": self.task()}


class TaskGetUnknown(_Tasks):
    """`tasks/get` is an unknown method, and `tasks/result` waits."""

    eras = (LEGACY,)

    def asked(self) -> Any:
        raise Refused(-32601, "Method not found")


class TaskGetWrapped(_Tasks):
    """`tasks/get` answers with a `task`, as `tools/call` does."""

    eras = (LEGACY,)

    def asked(self) -> Any:
        return {"task": self.task()}

    def end(self) -> Any:
        if not self.is_over():
            raise Refused(-32602, "Task is not completed")
        return RESULT


class TaskLost(_Tasks):
    """The server does not know its task any more, and the call must end."""

    expected = {"call": FAILS}

    def asked(self) -> Any:
        raise Refused(-32602, "Task not found")

    def end(self) -> Any:
        raise Refused(-32602, "Task not found")


class TaskLostSilently(_Tasks):
    """`tasks/result` is never answered, and `tasks/get` does not know the task: the call must end."""

    transports = ("stdio",)
    eras = (LEGACY,)
    expected = {"call": FAILS}

    def asked(self) -> Any:
        raise Refused(-32602, "Task not found")

    def end(self) -> Any:
        return None


class TaskKilled(_Tasks):
    """The server dies of its task, and the call must end."""

    transports = ("stdio",)
    expected = {"call": FAILS}

    def asked(self) -> Any:
        os._exit(1)

    def end(self) -> Any:
        os._exit(1)


class TaskFails(_Tasks):
    """A task fails."""

    expected = {"call": FAILS}

    def asked(self) -> Any:
        task = self.task()
        if not self.is_over():
            return task
        return {**task, "status": "failed", **({"error": {"code": -32603, "message": "it broke"}} if self.era == MODERN else {})}

    def end(self) -> Any:
        super().end()
        raise Refused(-32603, "it broke")


class TaskFailsSilently(_Tasks):
    """A task fails and does not say why."""

    expected = {"call": FAILS}

    def asked(self) -> Any:
        return {**self.task(), "status": "failed" if self.is_over() else "working"}

    def end(self) -> Any:
        super().end()
        raise Refused(-32603, "")


class TaskStatusUnknown(_Tasks):
    """A task's status is unknown until it is over."""

    def task(self) -> Json:
        task = super().task()
        return {**task, "status": task["status"].replace("working", "queued")}
