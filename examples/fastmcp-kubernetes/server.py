"""Counts words, with FastMCP (`pip install fastmcp`)."""

import os

from fastmcp import FastMCP

LONGEST = int(os.environ.get("WORDS_LONGEST", "1000"))

server = FastMCP("words")


@server.tool(output_schema=None, annotations={"readOnlyHint": True})
def count(text: str) -> str:
    """Counts the words of a text."""
    words = text.split()
    if len(words) > LONGEST:
        raise ValueError(f"a text has at most {LONGEST} words")
    return f"{len(words)} words"


@server.tool(output_schema=None)
def forget() -> str:
    """Is of no use to models: values.yaml leaves it out."""
    return "forgotten"


if __name__ == "__main__":
    server.run(show_banner=False)
