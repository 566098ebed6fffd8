"""Oddities of servers in the field. To add a report, add a class in one of these modules."""

from __future__ import annotations

from plain import Plain, Talks

from . import changes, contents, envelopes, events, handshakes, http, items, lists, modern, questions, results, schemas, stdio, talks, tasks, unlisted



_DIAGONAL = tuple(module.__name__ for module in (contents, items, schemas))


def _name(kind: type[Plain]) -> str:
    return "".join(f"-{letter.lower()}" if letter.isupper() or letter.isdigit() else letter for letter in kind.__name__)[1:]


def _all(kind: type[Plain]) -> list[type[Plain]]:
    return [kind] + [leaf for below in kind.__subclasses__() for leaf in _all(below)]


ALL: dict[str, type[Plain]] = {_name(kind): kind for kind in _all(Plain) if kind is not Talks and not kind.__name__.startswith("_")}
"""By their names in kebab case; what several share begins with `_`."""


def rows(kind: type[Plain]) -> list[tuple[str, str]]:
    """The transports and eras to test a server with: all, except for lists and results, which are the same in each."""
    crossed = [(transport, era) for transport in kind.transports for era in kind.eras]
    if kind.__module__ not in _DIAGONAL or len(crossed) < 4:
        return crossed
    return [("stdio", "legacy"), ("http", "modern")]
