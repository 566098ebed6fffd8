"""The tools of every asking server of `interop/`, as a worker."""

from __future__ import annotations

import asyncio
import logging
import os

from shoal_worker import Context, Worker

worker = Worker("asking")
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def record(what: str) -> None:
    """Writes to a file, because a killed process loses its memory."""
    with open(os.environ["INTEROP_RECORD"], "a", encoding="utf-8") as file:
        file.write(f"{what}\n")


@worker.tool(read_only=True)
async def echo(text: str) -> str:
    return text


@worker.tool()
async def greet(ctx: Context) -> str:
    answer = await ctx.elicit("Who are you?", FORM)
    return f"hello {answer['content']['name']}" if answer["action"] == "accept" else f"nobody: {answer['action']}"


@worker.tool()
async def summarize(text: str, ctx: Context) -> str:
    message = {"role": "user", "content": {"type": "text", "text": text}}
    answer = await ctx.sample(messages=[message], maxTokens=100)
    return f"summary: {answer['content']['text']}"


@worker.tool()
async def list_roots(ctx: Context) -> str:
    return "\n".join(root["uri"] for root in await ctx.roots())


@worker.tool()
async def work(steps: int, label: str, ctx: Context) -> str:
    """Takes a while, and says how far it is."""
    record(f"started {label}")
    try:
        for step in range(1, steps + 1):
            await ctx.progress(step, steps)
            await asyncio.sleep(0.05)
    except asyncio.CancelledError:
        record(f"cancelled {label}")
        raise
    return f"worked {steps} steps"


@worker.tool(read_only=True)
async def work_safely(steps: int, label: str, ctx: Context) -> str:
    """The same, and it may be called again."""
    return await work(steps, label, ctx)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    worker.run()
