"""Oddities that may be worse through Shoal than directly, and why."""

ACCEPTED: dict[str, str] = {}
