"""The client's side of a conversation: answers questions, records notifications."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import mcp_types as types
from mcp.client.session import ClientRequestContext, IncomingMessage

from harness import Failure

SAMPLED = "a sampled text"
ROOTS = ["file:///workspace/one", "file:///workspace/two"]
ARRIVAL_SECONDS = 10


class Peer:
    """Gives scripted answers, and records all questions and notifications."""

    def __init__(self, roots: list[str]) -> None:
        self.roots = roots
        self.form_answer: types.ElicitResult = types.ElicitResult(action="cancel")
        self.url_answer: types.ElicitResult = types.ElicitResult(action="cancel")
        self.forms: list[types.ElicitRequestFormParams] = []
        self.urls: list[types.ElicitRequestURLParams] = []
        self.samples: list[types.CreateMessageRequestParams] = []
        self.logs: list[types.LoggingMessageNotificationParams] = []
        self.updated: list[str] = []
        self.acknowledged: list[types.SubscriptionFilter] = []
        self.tool_list_changes = 0
        self._news = anyio.Event()

    async def on_elicit(
        self, _context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        """Answers a form or a URL elicitation."""
        if isinstance(params, types.ElicitRequestURLParams):
            self.urls.append(params)
            return self.url_answer
        self.forms.append(params)
        return self.form_answer

    async def on_sample(
        self, _context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult:
        """Answers as a model would."""
        self.samples.append(params)
        content = types.TextContent(type="text", text=SAMPLED)
        return types.CreateMessageResult(role="assistant", content=content, model="scripted")

    async def on_list_roots(self, _context: ClientRequestContext) -> types.ListRootsResult:
        """Names the roots."""
        return types.ListRootsResult(roots=[types.Root(uri=uri) for uri in self.roots])

    async def on_log(self, params: types.LoggingMessageNotificationParams) -> None:
        """Records a log message."""
        self.logs.append(params)
        self._wake()

    async def on_message(self, message: IncomingMessage) -> None:
        """Records the notifications without a callback."""
        if isinstance(message, types.ResourceUpdatedNotification):
            self.updated.append(message.params.uri)
        elif isinstance(message, types.SubscriptionsAcknowledgedNotification):
            self.acknowledged.append(message.params.notifications)
        elif isinstance(message, types.ToolListChangedNotification):
            self.tool_list_changes += 1
        self._wake()

    async def wait_for(self, what: str, arrived: Callable[[], Any]) -> None:
        """Waits until a notification makes `arrived` true."""
        with anyio.move_on_after(ARRIVAL_SECONDS):
            while not arrived():
                await self._news.wait()
            return
        raise Failure(f"{what} did not arrive within {ARRIVAL_SECONDS} s")

    def _wake(self) -> None:
        self._news.set()
        self._news = anyio.Event()
