"""Differences that are wanted, each with its reason: the name of a server or `*`, a regular expression for the difference, the reason."""

from __future__ import annotations

KNOWN: tuple[tuple[str, str, str], ...] = (
    ("*", r"\._meta(\.io\.modelcontextprotocol/serverInfo)?: new$", "results of 2026-07-28 name the server"),
    ("*", r"\.(cacheScope|ttlMs): ", "lists of 2026-07-28 say how long they may be kept"),
    ("everything", r"get-env\.content", "a server's environment holds what Shoal is told to pass on"),
    ("supabase", r"", "without an account the server refuses its list of tools, and Shoal ends with that reason"),
    ("pdf (apps)", r"^read ui://", "the Python SDK refuses an event above 1 MiB, and an answer that takes longer than `streams.grace` is an event"),
)
