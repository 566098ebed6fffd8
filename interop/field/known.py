"""Differences that are wanted, each with its reason: the name of a server or `*`, a regular expression for the difference, the reason. The page
has those without a reason in its text."""

from __future__ import annotations

KNOWN: tuple[tuple[str, str, str], ...] = (
    ("*", r"\._meta(\.io\.modelcontextprotocol/serverInfo)?: new$", ""),
    ("*", r"\.(cacheScope|ttlMs): ", ""),
    ("*", r"no_such_tool", "unknown tools get protocol errors, as the specification says"),
    ("Go SDK, untyped value", r"^(resources|resources/templates|prompts)/list\.", "Shoal refuses (-32601) methods of capabilities that the server does not declare"),
    ("everything", r"simulate-research-query", "clients can call a task-only tool without a task"),
    ("everything", r"get-env\.content", "the server gets only [some variables](stdio-servers.md#the-environment-of-a-server)"),
    ("supabase", r"", "without an account, the server lists no tools, so Shoal exits, and prints the server's reason"),
    ("pdf (apps)", r"^read ui://", "the Python SDK refuses [large events](#limits-of-clients)"),
)
