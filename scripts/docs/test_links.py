"""Tests the detection of broken links, and the book's links."""

import contextlib
import io
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

import book
import links


class LinksTest(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = pathlib.Path(place.name).resolve()
        subprocess.run(["git", "init", "--quiet", str(self.root)], check=True)

    def write(self, name: str, *lines: str) -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def failed(self) -> list[str]:
        return list(links.failures(self.root, links.tracked(self.root)))

    def test_links_that_lead_somewhere(self) -> None:
        self.write("code.rs")
        self.write("docs/other.md", "# Of `names` & [links](other.md)", "## Twice", "## Twice")
        self.write(
            "page.md",
            "[a](docs/other.md#of-names--links) [b](docs/other.md#twice-1) ![c](code.rs) [d](docs/) [e](https://example.com/x#y)",
            "[f](#here) [g][g] <a href=\"docs/other.md\">h</a>",
            "[g]: docs/other.md#twice",
            "# Here",
        )  # fmt: skip
        self.assertEqual(self.failed(), [])

    def test_what_leads_nowhere_is_named(self) -> None:
        self.write("docs/other.md", "# Known")
        for line, reason in (
            ("[a](docs/lost.md)", "page.md line 2: the link docs/lost.md names a file that does not exist"),
            ("[a](docs/other.md#lost)", "names a heading that docs/other.md does not have"),
            ("[a](#lost)", "names a heading that page.md does not have"),
            ("[a](../lost.md)", "leaves the repository"),
            ("[a](/docs/other.md)", "is absolute"),
            ("[a]: docs/lost.md", "names a file that does not exist"),
            ('<img src="docs/lost.svg">', "names a file that does not exist"),
            ("[`a`](docs/lost.md)", "names a file that does not exist"),
        ):
            with self.subTest(line):
                self.write("page.md", "# Page", line)
                (failure,) = self.failed()
                self.assertIn(reason, failure)

    def test_code_and_comments_have_no_links_and_no_headings(self) -> None:
        self.write("page.md", "```md", "[a](lost.md)", "# Lost", "```", "`[a](lost.md)`", "<!-- [a](lost.md) -->")
        self.assertEqual(self.failed(), [])
        self.assertEqual(links.anchors((self.root / "page.md").read_text(encoding="utf-8")), set())

    def test_each_page_is_in_the_summary_once(self) -> None:
        for page in ("docs/a.md", "docs/deep/b.md", "docs/twice.md"):
            self.write(page, "# Page")
        self.write("docs/SUMMARY.md", "* [a](a.md)", "* [twice](twice.md)", "* [twice](twice.md)")
        self.assertEqual(
            self.failed(),
            [
                "FAIL docs/deep/b.md: docs/SUMMARY.md names this page 0 times; name it once",
                "FAIL docs/twice.md: docs/SUMMARY.md names this page 2 times; name it once",
            ],
        )

    def test_the_books_links_leave_it_for_the_repository(self) -> None:
        self.write("crates/x.rs")
        text = "[a](../crates) [b](../crates/x.rs#L1) [c](other.md#d) [d](adr/README.md) [e](https://example.com) `[f](../crates)`"
        there = "https://forge.example.com/shoal"
        self.assertEqual(
            book.rewritten(self.root, there, "page.md", text),
            f"[a]({there}/tree/main/crates) [b]({there}/blob/main/crates/x.rs#L1) "
            "[c](other.md#d) [d](adr/index.md) [e](https://example.com) `[f](../crates)`",
        )
        deeper = book.rewritten(self.root, there, "deep/page.md", "[a](../b.md) [c](../../crates)")
        self.assertEqual(deeper, f"[a](../b.md) [c]({there}/tree/main/crates)")

    def test_a_made_book_is_followed(self) -> None:
        self.write("a.html", '<a href="b.html#there">', '<a href="b.html#lost">', '<a href="c.html">', '<a href="https://example.com">')
        self.write("b.html", '<h1 id="there">')
        self.assertEqual(
            list(book.check(self.root)),
            [
                "FAIL a.html: the link b.html#lost names no heading of its page",
                "FAIL a.html: the link c.html names no page of the book",
            ],
        )

    def test_the_book_names_the_repository_of_the_releases(self) -> None:
        repository = json.loads((links.ROOT / "deploy/release.json").read_text(encoding="utf-8"))["repository"]
        settings = (links.ROOT / "book.toml").read_text(encoding="utf-8")
        named = re.findall(r'^(?:git-repository-url|edit-url-template) = "(.*)"$', settings, re.MULTILINE)
        self.assertEqual(named, [repository, f"{repository}/edit/{book.BRANCH}/{{path}}"])

    def test_a_warning_of_mdbook_is_a_failure(self) -> None:
        for script, failures in (("true", 0), ("echo ' WARN unclosed HTML tag'", 1), ("exit 3", 1)):
            with self.subTest(script), contextlib.redirect_stdout(io.StringIO()):
                program = self.root / "mdbook"
                program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
                program.chmod(0o755)
                self.assertEqual(len(book.build(str(program), self.root)), failures)


if __name__ == "__main__":
    unittest.main()
