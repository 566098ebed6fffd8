"""The same server before and after, with FastMCP (`pip install fastmcp`). Each session has a basket.

    server.py          speaks over stdio
    server.py PORT     listens on that port
"""

import asyncio
import sys

from fastmcp import Context, FastMCP

server = FastMCP("shop")


@server.tool(output_schema=None)
async def put(item: str, ctx: Context) -> str:
    """Puts an item into the session's basket."""
    basket = [*(await ctx.get_state("basket") or []), item]
    await ctx.set_state("basket", basket)
    return ", ".join(basket)


@server.tool(output_schema=None)
async def pack(steps: int, ctx: Context) -> str:
    """Packs the basket, step by step, four steps a second."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps)
        await asyncio.sleep(0.25)
    return "packed: " + ", ".join(await ctx.get_state("basket") or ["nothing"])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run(transport="http", port=int(sys.argv[1]), show_banner=False)
    else:
        server.run(show_banner=False)
