"""A server with a long job (FastMCP, `pip install fastmcp`). It knows nothing of tasks."""

import asyncio
import contextlib

from fastmcp import Context, FastMCP

server = FastMCP("films")
jobs: dict[str, str] = {}
"""How far the job of each film is."""


@server.tool(output_schema=None)
async def render(film: str, frames: int, ctx: Context) -> str:
    """Renders a film, ten frames a second."""
    with said_when_cancelled(film):
        for frame in range(1, frames + 1):
            jobs[film] = f"{frame} of {frames} frames"
            await ctx.report_progress(frame, frames)
            await asyncio.sleep(0.1)
    jobs[film] = "done"
    return f"{film}.mp4, {frames} frames"


@server.tool(output_schema=None, annotations={"readOnlyHint": True})
def how_far(film: str) -> str:
    """Says how far the job of a film is."""
    return jobs.get(film, "not begun")


@contextlib.contextmanager
def said_when_cancelled(film: str):
    try:
        yield
    except asyncio.CancelledError:
        jobs[film] = f"cancelled after {jobs[film]}"
        raise


if __name__ == "__main__":
    server.run(show_banner=False)
