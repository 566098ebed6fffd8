"""A tool server: answers, progress, session state."""

from __future__ import annotations

import asyncio
from typing import Annotated

from shoal_worker import Context, ToolError, Worker

worker = Worker("python", version="1.0.0", instructions="Tools written in Python.")


@worker.tool(read_only=True)
async def reverse(text: Annotated[str, "What to turn around."]) -> str:
    """Returns a text from its end to its beginning."""
    return text[::-1]


@worker.tool(read_only=True)
def divide(a: float, b: float) -> float:
    """Divides two numbers. A plain function runs in a thread."""
    if b == 0:
        raise ToolError("nothing can be divided by zero")
    return a / b


@worker.tool()
async def work(steps: int, ctx: Context, seconds: float = 0.1) -> str:
    """Works step by step and says how far it is. It stops when its client cancels it."""
    for step in range(1, steps + 1):
        await ctx.progress(step, steps, f"step {step} of {steps}")
        await asyncio.sleep(seconds)
    return f"worked {steps} steps for {ctx.principal}"


@worker.tool()
async def visits(ctx: Context) -> int:
    """Counts its calls in this session, whichever worker runs them."""
    count = await ctx.session.get("visits", 0) + 1
    await ctx.session.set("visits", count)
    return count


if __name__ == "__main__":
    worker.run()
