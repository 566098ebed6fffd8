"""A tool's access to its call, client and session."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from typing import Any

from . import errors
from ._loops import run_on
from ._proto.shoal.types.v1 import rpc_pb2
from ._proto.shoal.worker.v1 import worker_pb2
from ._record import Record
from ._runtime import Places

LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
KEY_BYTES = 128


class Context:
    """A call, as its tool sees it. Passed to tools with a parameter of this type."""

    def __init__(self, record: Record, places: Places) -> None:
        self._record = record
        self._places = places
        self._links = asyncio.get_running_loop()
        """The loop that everything about the call belongs to; tools run on others."""
        self._deadline = time.monotonic() + record.call.timeout_ms / 1000
        call = record.call
        self.id: str = record.id.hex()
        """The call's id, the same whenever it is sent again."""
        self.principal: str = call.caller.principal
        """Who calls, as Shoal has authenticated it."""
        self.session_id: str | None = record.session
        """The session of a client that has one."""
        self.revision: str = call.caller.revision
        """The revision of MCP that the client speaks."""
        self.capabilities: dict[str, Any] = json.loads(call.caller.capabilities or b"{}")
        """What the client has declared."""
        self.client_info: dict[str, Any] | None = (
            json.loads(call.caller.client_info) if call.caller.HasField("client_info") else None
        )
        self.meta: dict[str, Any] = (json.loads(call.params or b"{}") or {}).get("_meta") or {}
        """`_meta` of the request."""
        self.traceparent: str | None = call.traceparent if call.HasField("traceparent") else None
        """W3C trace context of the parent span, for a tracer's propagator."""
        self.tracestate: str | None = call.tracestate if call.HasField("tracestate") else None
        self.session = SessionState(record)
        """What is kept in the caller's session."""

    @property
    def remaining(self) -> float:
        """Remaining seconds until the deadline."""
        return max(0.0, self._deadline - time.monotonic())

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Reports progress, if the client asked for it."""
        if not self._record.call.HasField("progress_token"):
            return
        params: dict[str, Any] = {"progressToken": json.loads(self._record.call.progress_token), "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        await self._notify("notifications/progress", params)

    async def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """Sends a log message to the client, if the client wants this level."""
        wanted = self._record.call.log_level
        if not wanted or LEVELS.index(level) + 1 < wanted:
            return
        params = {"level": level, "data": data} | ({"logger": logger} if logger else {})
        await self._notify("notifications/message", params)

    async def _notify(self, method: str, params: dict[str, Any]) -> None:
        await run_on(self._links, self._record.notify(method, _json(params)))

    async def elicit(self, message: str, schema: dict[str, Any]) -> dict[str, Any]:
        """Asks the user to fill in a form: `{"action": "accept" | "decline" | "cancel", "content": …}`."""
        params = {"message": message, "requestedSchema": schema}
        return await self.ask("elicitation/create", params, "elicitation")

    async def sample(self, **params: Any) -> dict[str, Any]:
        """Asks the client's model (`sampling/createMessage`)."""
        return await self.ask("sampling/createMessage", params, "sampling")

    async def roots(self) -> list[dict[str, Any]]:
        """Asks for the client's roots."""
        return (await self.ask("roots/list", None, "roots"))["roots"]

    async def ask(self, method: str, params: dict[str, Any] | None, capability: str) -> Any:
        """Sends the client a request and returns its result. The call gives up its slot while it waits."""
        if capability not in self.capabilities:
            needs = {"requiredCapabilities": {capability: {}}}
            raise errors.RpcError(errors.MISSING_CAPABILITY, f"the client does not declare {capability}", needs)
        return await run_on(self._links, self._ask(method, None if params is None else _json(params)))

    async def _ask(self, method: str, encoded: bytes | None) -> Any:
        message = worker_pb2.Event.Ask(method=method, params=encoded)
        if not self._places.begin_asking(self.principal):
            raise errors.ToolError("too many calls wait for answers of their clients; try again later")
        self._places.leave()
        try:
            return await _answered(self._record, "ask", message, len(encoded or b""))
        finally:
            self._places.end_asking(self.principal)
            # Also for a cancelled call, because its slot is returned later.
            await asyncio.shield(self._places.enter())


class SessionState:
    """Small values for later calls of the session, on any worker."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._links = asyncio.get_running_loop()
        self._turn = asyncio.Lock()

    async def get(self, key: str, default: Any = None) -> Any:
        """Reads a value; `default` if there is none."""
        answer = await self._ask(worker_pb2.Event.State(get=worker_pb2.Event.State.Get(key=_key(key))), len(key))
        return answer.get("value", default)

    async def set(self, key: str, value: Any) -> None:
        """Stores a value, and returns when it is stored as safely as the session."""
        encoded = _json(value)
        said = worker_pb2.Event.State.Set(key=_key(key), value=encoded, writing=secrets.randbits(63) or 1)
        await self._ask(worker_pb2.Event.State(set=said), len(key.encode()) + len(encoded))

    async def remove(self, key: str) -> None:
        """Removes a value."""
        said = worker_pb2.Event.State.Set(key=_key(key), writing=secrets.randbits(63) or 1)
        await self._ask(worker_pb2.Event.State(set=said), len(key.encode()))

    async def keys(self) -> list[str]:
        """All keys, sorted."""
        answer = await self._ask(worker_pb2.Event.State(keys=worker_pb2.Event.State.Keys()), 0)
        return answer["keys"]

    async def _ask(self, message: worker_pb2.Event.State, payload: int) -> Any:
        return await run_on(self._links, self._in_turn(message, payload))

    async def _in_turn(self, message: worker_pb2.Event.State, payload: int) -> Any:
        # One at a time, to keep the tool's order.
        async with self._turn:
            return await _answered(self._record, "state", message, payload)


async def _answered(record: Record, kind: str, message: Any, payload: int) -> Any:
    ask, answer = record.ask(kind, message, payload, state=kind == "state")
    try:
        outcome: rpc_pb2.Outcome = await answer
    finally:
        record.withdraw_ask(ask)
    if outcome.HasField("error"):
        raise errors.RpcError.of_proto(outcome.error)
    return json.loads(outcome.result)


def _key(key: str) -> str:
    if not 1 <= len(key.encode()) <= KEY_BYTES:
        raise ValueError(f"a key of a session's state has 1 to {KEY_BYTES} bytes")
    return key


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()



