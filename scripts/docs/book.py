#!/usr/bin/env python3
"""Makes the book's links work: a preprocessor of mdBook, and a check of the pages that mdBook has made.

    book.py supports RENDERER       what mdBook asks first
    book.py                         reads the book from standard input, and prints it with its links rewritten
    book.py build MDBOOK DIRECTORY  has that program make the book there; a warning or a link that leads nowhere is a failure

Pages in `docs/` link to files outside of it relatively, so that forges show them. The book has no such files: there, these links lead to
the repository that `deploy/release.json` names.
"""

from __future__ import annotations

import html.parser
import json
import pathlib
import posixpath
import re
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from typing import Any

import links

BRANCH = "main"


def address(root: pathlib.Path, repository: str, page: str, target: str) -> str:
    """The target of a link in the book. `page` is relative to `docs/`."""
    path, mark, anchor = target.partition("#")
    if links.is_elsewhere(target) or not path:
        return target
    file = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), path))
    if not file.startswith("docs/") or file == str(links.SUMMARY):
        kind = "tree" if (root / file).is_dir() else "blob"
        return f"{repository}/{kind}/{BRANCH}/{file}{mark}{anchor}"
    if path == "README.md" or path.endswith("/README.md"):
        return f"{path.removesuffix('README.md')}index.md{mark}{anchor}"
    return target


def rewritten(root: pathlib.Path, repository: str, page: str, text: str) -> str:
    """Rewrites the page's links for the book."""
    for link in reversed(list(links.links(text))):
        text = text[: link.start] + address(root, repository, page, link.target) + text[link.end :]
    return text


def chapters(items: list[Any]) -> Iterator[dict[str, Any]]:
    """Every chapter of a book, including nested ones."""
    for item in items:
        if isinstance(item, dict) and "Chapter" in item:
            yield item["Chapter"]
            yield from chapters(item["Chapter"]["sub_items"])


def preprocess() -> None:
    _, book = json.load(sys.stdin)
    repository = json.loads((links.ROOT / "deploy/release.json").read_text(encoding="utf-8"))["repository"]
    for chapter in chapters(book["items"]):
        if chapter["source_path"]:
            chapter["content"] = rewritten(links.ROOT, repository, chapter["source_path"], chapter["content"])
    json.dump(book, sys.stdout)


class Page(html.parser.HTMLParser):
    """A page's links and anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.targets.append(value)
            elif value and name in ("id", "name"):
                self.anchors.add(value)


def check(directory: pathlib.Path) -> Iterator[str]:
    """The book's broken links."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(directory.rglob("*.html"))}
    # The 404 page is served from every folder, and the print page contains all pages.
    for path in pages.keys() - {directory / "404.html", directory / "print.html"}:
        for target in pages[path].targets:
            place, _, anchor = target.partition("#")
            if links.is_elsewhere(target):
                continue
            file = path.parent.joinpath(urllib.parse.unquote(place)).resolve() if place else path
            file = file / "index.html" if file.is_dir() else file
            if not file.exists():
                yield f"FAIL {path.relative_to(directory)}: the link {target} names no page of the book"
            elif anchor and file in pages and urllib.parse.unquote(anchor) not in pages[file].anchors:
                yield f"FAIL {path.relative_to(directory)}: the link {target} names no heading of its page"


def build(program: str, directory: pathlib.Path) -> list[str]:
    """Makes the book, and returns its errors."""
    command = [program, "build", "--dest-dir", str(directory), str(links.ROOT)]
    made = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(made.stdout, end="")
    if made.returncode or re.search(r"^ *(WARN|ERROR)", made.stdout, re.MULTILINE):
        return [f"FAIL book.toml: mdBook ended with {made.returncode}, or warned; see above"]
    return sorted(check(directory))


def main() -> int:
    match sys.argv[1:]:
        case ["supports", _]:
            return 0
        case ["build", program, directory]:
            failed = build(program, pathlib.Path(directory).resolve())
            print("\n".join(failed) or "ok the book and its links")
            return 1 if failed else 0
        case []:
            preprocess()
            return 0
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main())
