"""Tests how a page's failures are reported."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import run


class RunTest(unittest.TestCase):
    def ran(self, *lines: str) -> tuple[int, list[str]]:
        """The page's exit code, and the lines about its blocks."""
        with tempfile.TemporaryDirectory() as place:
            page = pathlib.Path(place, "page.md")
            page.write_text("\n".join(lines) + "\n", encoding="utf-8")
            said = io.StringIO()
            with mock.patch.object(sys, "argv", ["run.py", str(page), "20"]), contextlib.redirect_stdout(said):
                status = run.main()
        return status, [line for line in said.getvalue().splitlines() if line.startswith(("ok ", "FAIL ", "skip "))]

    def test_blocks_are_run_in_one_shell_and_print_what_is_shown(self) -> None:
        told = self.ran("```sh", "word=hello", "```", "```sh", "echo $word", "```", "```text", "hello", "```")
        self.assertEqual(told, (0, ["ok page.md:1", "ok page.md:4", "ok page.md:7"]))

    def test_a_command_that_fails_is_named(self) -> None:
        self.assertEqual(
            self.ran("```sh", "true", "```", "```sh", "false", "```", "```sh", "true", "```"),
            (1, ["ok page.md:1", "FAIL page.md line 4: a command ended with 1"]),
        )

    def test_what_is_shown_and_not_printed_is_named(self) -> None:
        for shown in ("```text\nhello\n```", "<!-- shows hello -->"):
            self.assertEqual(
                self.ran("```sh", "echo good-bye", "```", shown),
                (1, ["ok page.md:1", "FAIL page.md line 4: this was not printed: hello"]),
            )

    def test_a_block_that_is_not_run_says_why(self) -> None:
        block = ("```sh", "false", "```")
        self.assertEqual(self.ran("<!-- not run: it fails -->", *block), (0, ["skip page.md:2: it fails"]))
        for comment in ("<!-- not run -->", "<!-- not run: -->"):
            status, (told,) = self.ran(comment, *block)
            self.assertEqual(status, 1)
            self.assertIn("say why", told)

    def test_commands_are_marked_so(self) -> None:
        for block in ("```bash\ntrue\n```", "```console\n$ true\n```", "```\n$ true\n```", "* item\n\n  ```shell\n  true\n  ```"):
            status, (told,) = self.ran(block)
            self.assertEqual(status, 1)
            self.assertIn("mark commands as `sh`", told)

    def test_hidden_commands_and_files(self) -> None:
        told = self.ran(
            "<!-- run", "export WORD=hello", "-->", "<!-- file said.py -->", "```python", "print('hello')", "```",
            "```sh", "echo $WORD; python3 said.py", "```", "```text", "hello", "```",
        )  # fmt: skip
        self.assertEqual(told[0], 0, told)


if __name__ == "__main__":
    unittest.main()
