"""Differences that are wanted, each with its reason: the name of a server or `*`, a regular expression for the difference, the reason. The page
has those without a reason in its text."""

from __future__ import annotations

KNOWN: tuple[tuple[str, str, str], ...] = (
    ("*", r"\._meta(\.io\.modelcontextprotocol/serverInfo)?: new$", ""),
    ("*", r"\.(cacheScope|ttlMs): ", ""),
    ("*", r"no_such_tool", "an unknown tool is an error of the protocol, as the specification says"),
    ("Go SDK, any", r"^(resources|resources/templates|prompts)/list\.", "a method of a capability that no server declares is unknown (-32601)"),
    ("everything", r"simulate-research-query", "a tool that runs only as a task can be called without one"),
    ("everything", r"get-env\.content", "a server's environment holds what Shoal is told to pass on"),
    ("supabase", r"", "without an account the server refuses its list of tools, and Shoal ends with that reason"),
    ("pdf (apps)", r"^read ui://", "the Python SDK refuses an event above 1 MiB, and an answer that takes longer than `streams.grace` is an event"),
)
