"""Makes functions tools: schemas, arguments, results."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import typing
from collections.abc import Callable
from typing import Any

from . import errors
from ._loops import TOOL, run_on
from ._proto.shoal.types.v1 import call_pb2
from .context import Context
from .schema import decode, encode, object_of, schema_of

log = logging.getLogger("shoal_worker")


class Tool:
    """One tool."""

    def __init__(self, function: Callable[..., Any], **described: Any) -> None:
        self.function = function
        self.name: str = described.pop("name") or function.__name__
        hints = typing.get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters
        self._context = [name for name in parameters if hints.get(name) is Context]
        self._hints = {name: hints.get(name, Any) for name in parameters if name not in self._context}
        required = [name for name in self._hints if parameters[name].default is inspect.Parameter.empty]
        self._required = required
        schema = described.pop("input_schema") or self._with_defaults(object_of(self._hints, required), parameters)
        self.definition: dict[str, Any] = {"name": self.name, "inputSchema": schema}
        description = described.pop("description") or inspect.getdoc(function)
        returned = self._returned(hints.get("return"))
        self.is_structured = returned is not None
        others = {"title": described.pop("title"), "description": description, "outputSchema": returned}
        self.definition |= {name: value for name, value in others.items() if value is not None}
        hinted = {f"{name}Hint": value for name, value in described.items() if value is not None}
        if hinted:
            self.definition["annotations"] = hinted

    @staticmethod
    def _with_defaults(schema: dict[str, Any], parameters: Any) -> dict[str, Any]:
        for name, member in schema["properties"].items():
            default = parameters[name].default
            if default is not inspect.Parameter.empty and default is not None:
                schema["properties"][name] = member | {"default": encode(default)}
        return schema

    @staticmethod
    def _returned(hint: Any) -> dict[str, Any] | None:
        """The schema of structured results, if the return type names its members."""
        if hint is None or not (hasattr(hint, "__dataclass_fields__") or hasattr(hint, "model_json_schema")):
            return schema_of(hint) if hint is not None and typing.is_typeddict(hint) else None
        return schema_of(hint)

    async def call(self, arguments: dict[str, Any], context: Context, loop: asyncio.AbstractEventLoop) -> dict[str, Any]:
        """Runs the tool: on `loop` if it is async, otherwise in a thread. Returns an MCP result."""
        if inspect.iscoroutinefunction(self.function):
            return await run_on(loop, self._awaited(arguments, context), f"{TOOL}{self.name}")
        return await _in_thread(self._called, arguments, context)

    async def _awaited(self, arguments: dict[str, Any], context: Context) -> dict[str, Any]:
        try:
            return self._result(await self.function(**self._given(arguments, context)))
        except (Exception, asyncio.CancelledError):
            raise
        except BaseException as error:
            # For example `sys.exit()`, which would end the event loop and the worker.
            raise Ended(_told(error)) from error

    def _called(self, arguments: dict[str, Any], context: Context) -> dict[str, Any]:
        try:
            return self._result(self.function(**self._given(arguments, context)))
        except StopIteration as error:
            # Futures cannot carry it.
            raise Ended(_told(error)) from error
        except Exception:
            raise
        except BaseException as error:
            raise Ended(_told(error)) from error

    def _given(self, arguments: dict[str, Any], context: Context) -> dict[str, Any]:
        given = {name: decode(self._hints[name], value) for name, value in arguments.items() if name in self._hints}
        missing = [name for name in self._required if name not in given]
        if missing:
            raise errors.ToolError(f"missing arguments: {', '.join(missing)}")
        return given | dict.fromkeys(self._context, context)

    def _result(self, returned: Any) -> dict[str, Any]:
        if isinstance(returned, dict) and isinstance(returned.get("content"), list):
            return returned
        value = encode(returned)
        if value is None:
            return {"content": []}
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        result: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
        if self.is_structured or isinstance(value, dict):
            result["structuredContent"] = value
        return result


async def _in_thread(function: Callable[..., Any], *given: Any) -> Any:
    """Runs a blocking function. It cannot be stopped, so a stopped call keeps its slot until the function returns."""
    running = asyncio.ensure_future(asyncio.to_thread(function, *given))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


class Ended(Exception):
    """An exception of a tool that would end more than the tool."""


def _told(error: BaseException) -> str:
    words = str(error)
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


async def run(
    tools: dict[str, Tool], call: call_pb2.Call, context: Context, loop: asyncio.AbstractEventLoop
) -> call_pb2.CallOutcome:
    """Runs a call and converts every failure to an outcome."""
    try:
        result = await _run(tools, call, context, loop)
    except errors.RpcError as error:
        return call_pb2.CallOutcome(error=error.to_proto())
    text = json.dumps(result, ensure_ascii=False, allow_nan=False)
    # File names may contain invalid UTF-8, which Python keeps as lone surrogates.
    return call_pb2.CallOutcome(result=text.encode(errors="replace"))


async def _run(
    tools: dict[str, Tool], call: call_pb2.Call, context: Context, loop: asyncio.AbstractEventLoop
) -> dict[str, Any]:
    if call.method != "tools/call":
        raise errors.RpcError(errors.METHOD_NOT_FOUND, f"method not found: {call.method}")
    params = json.loads(call.params or b"{}")
    tool = tools.get(params.get("name"))
    if tool is None:
        raise errors.RpcError(errors.INVALID_PARAMS, "unknown tool")
    try:
        return await tool.call(params.get("arguments") or {}, context, loop)
    except (errors.RpcError, asyncio.CancelledError):
        raise
    except Exception as error:
        if not isinstance(error, errors.ToolError):
            log.exception("tool %s failed", tool.name)
        words = str(error) or type(error).__name__
        return {"content": [{"type": "text", "text": words}], "isError": True}
