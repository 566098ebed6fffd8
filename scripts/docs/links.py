#!/usr/bin/env python3
"""Checks every link between files of the repository, and that the book has every page.

    links.py [ROOT]

Reads each Markdown file that Git tracks. A relative link must name a file or a folder that exists, and an anchor must be a heading of
its page, spelled as forges spell it. Each page in `docs/` must be in `docs/SUMMARY.md` once. Prints one line for each failure, and
`ok` with the number of links if there is none.
"""

from __future__ import annotations

import collections
import dataclasses
import pathlib
import re
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUMMARY = pathlib.PurePosixPath("docs/SUMMARY.md")
FENCE = re.compile(r"^ *(```+|~~~+)")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
INLINE = re.compile(r"(?<=\])\(\s*<?(?P<target>[^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
DEFINED = re.compile(r"^ {0,3}\[[^\]]+\]:\s*<?(?P<target>[^\s>]+)")
ATTRIBUTE = re.compile(r"<[a-zA-Z][^>]*?\s(?:href|src)=\"(?P<target>[^\"]+)\"")
LINKS = (INLINE, DEFINED, ATTRIBUTE)
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(?P<text>.*?)\s*#*\s*$")
NAMED = re.compile(r"<[a-zA-Z][^>]*?\s(?:id|name)=\"(?P<name>[^\"]+)\"")


@dataclasses.dataclass(frozen=True)
class Link:
    """A link, and the position of its target."""

    line: int
    start: int
    end: int
    target: str


def blanked(text: str, pattern: re.Pattern[str]) -> str:
    """Replaces each match by spaces, so that positions stay."""
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Each line outside code blocks, with its position."""
    at, fence = 0, ""
    for line in blanked(text, COMMENT).splitlines(keepends=True):
        opened = FENCE.match(line)
        if fence:
            if opened and opened[1].startswith(fence):
                fence = ""
        elif opened:
            fence = opened[1]
        else:
            yield at, line
        at += len(line)


def links(text: str) -> Iterator[Link]:
    """The links of a page, in order."""
    for at, line in prose(text):
        found = sorted((match.span("target"), match["target"]) for pattern in LINKS for match in pattern.finditer(blanked(line, CODE)))
        for (start, end), target in found:
            yield Link(text.count("\n", 0, at) + 1, at + start, at + end, target)


def slug(heading: str) -> str:
    """The anchor that forges give a heading."""
    shown = re.sub(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", shown.replace("`", "")).strip().lower().replace(" ", "-")


def anchors(text: str) -> set[str]:
    """All anchors of a page."""
    found: set[str] = set()
    seen: collections.Counter[str] = collections.Counter()
    for _, line in prose(text):
        found.update(NAMED.findall(blanked(line, CODE)))
        heading = HEADING.match(line)
        if heading:
            name = slug(heading["text"])
            found.add(f"{name}-{seen[name]}" if seen[name] else name)
            seen[name] += 1
    return found


def is_elsewhere(target: str) -> bool:
    """Whether a link leaves the repository."""
    return bool(urllib.parse.urlsplit(target).scheme) or target.startswith("//")


def wrong(root: pathlib.Path, page: str, target: str) -> str:
    """Why a relative link is broken; empty if it is not."""
    path, _, anchor = target.partition("#")
    if path.startswith("/"):
        return "is absolute; write it relative to this page"
    file = (root / page).parent.joinpath(urllib.parse.unquote(path)).resolve() if path else root / page
    if not file.is_relative_to(root):
        return "leaves the repository"
    if not file.exists():
        return "names a file that does not exist"
    if anchor and file.is_dir():
        file /= "README.md"
    if anchor and file.suffix == ".md" and anchor not in anchors(file.read_text(encoding="utf-8")):
        return f"names a heading that {file.relative_to(root)} does not have"
    return ""


def tracked(root: pathlib.Path) -> list[str]:
    """The repository's existing Markdown files, including untracked ones."""
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [page for page in listed if (root / page).exists()]


def failures(root: pathlib.Path, pages: list[str]) -> Iterator[str]:
    """The errors in these pages' links, and in the book's summary."""
    for page in pages:
        for link in links((root / page).read_text(encoding="utf-8")):
            reason = "" if is_elsewhere(link.target) else wrong(root, page, link.target)
            if reason:
                yield f"FAIL {page} line {link.line}: the link {link.target} {reason}"
    if not (root / SUMMARY).exists():
        return
    listed = collections.Counter(str(SUMMARY.parent / link.target) for link in links((root / SUMMARY).read_text(encoding="utf-8")))
    for page in pages:
        if page.startswith(f"{SUMMARY.parent}/") and page != str(SUMMARY) and listed[page] != 1:
            yield f"FAIL {page}: {SUMMARY} names this page {listed[page]} times; name it once"


def main() -> int:
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    pages = tracked(root)
    failed = list(failures(root, pages))
    for failure in failed:
        print(failure)
    if not failed:
        count = sum(1 for page in pages for _ in links((root / page).read_text(encoding="utf-8")))
        print(f"ok {count} links of {len(pages)} pages")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
