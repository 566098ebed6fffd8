"""The tools that `shoal worker-check` expects, in Python."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from shoal_worker import Context, ToolError, Worker

worker = Worker("checked")
counter = 0

FORM = {
    "type": "object",
    "properties": {"guests": {"type": "integer"}, "date": {"type": "string"}},
    "required": ["guests", "date"],
}


@worker.tool(read_only=True)
async def echo(text: str) -> str:
    return text


@worker.tool(read_only=True)
async def fail(message: str) -> str:
    raise ToolError(message)


@worker.tool()
async def long_job(steps: int, interval_ms: int, ctx: Context) -> str:
    for step in range(1, steps + 1):
        await ctx.progress(step, steps)
        await asyncio.sleep(interval_ms / 1000)
    return f"done after {steps} steps"


@worker.tool()
async def write_log(level: str, message: str, ctx: Context) -> str:
    await ctx.log(level, message)
    return "written"


@worker.tool()
async def increment_counter() -> str:
    global counter
    counter += 1
    return str(counter)


@worker.tool()
async def book_table(restaurant: str, ctx: Context) -> str:
    answer: dict[str, Any] = await ctx.elicit("When, and with how many?", FORM)
    content = answer["content"]
    return f"booked {restaurant} for {content['guests']} on {content['date']}"


@worker.tool()
async def remember(key: str, value: str, ctx: Context) -> str:
    await ctx.session.set(key, value)
    return f"remembered {key}"


@worker.tool(read_only=True)
async def recall(key: str, ctx: Context) -> str:
    return await ctx.session.get(key)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    worker.run()
