#!/usr/bin/env python3
"""Runs the commands of a page, as they stand there, in one shell, in an empty directory.

    run.py PAGE SECONDS

Every block marked `sh` is run. What a block marked `text` shows must be lines of what has been printed by then. Comments in front of a
block, which readers do not see, say otherwise:

    <!-- not run: REASON -->     the next block is for readers only
    <!-- run                     commands that are run at this place
    COMMANDS
    -->
    <!-- file NAME -->           the next block is written to that file
    <!-- shows PART -->          this must be part of what has been printed by then

The commands find the project's directory in ROOT. One line tells of each block: `ok`, `FAIL` or `skip`, with the page and the line.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MARK = "\x1e"
PIECE = re.compile(r"^ *<!-- (?P<comment>.*?)-->$|^(?P<indent> *)```(?P<kind>\S*)[^\n]*\n(?P<block>.*?)^ *```$", re.MULTILINE | re.DOTALL)
OTHER_SHELLS = {"bash", "shell", "console", "zsh", "shell-session"}


class Mistake(Exception):
    """A page that cannot be run as written."""


@dataclasses.dataclass
class Step:
    """A step of the page."""

    line: int
    commands: str = ""
    lines: tuple[str, ...] = ()
    part: str = ""
    skipped: str = ""


def steps(text: str) -> list[Step]:
    """The page's steps, in order."""
    found: list[Step] = []
    skipped = file = ""
    for piece in PIECE.finditer(text):
        line = text.count("\n", 0, piece.start()) + 1
        if piece["kind"] is None:
            word, _, rest = piece["comment"].strip().partition("\n" if piece["comment"].startswith("run\n") else " ")
            if word == "run":
                found.append(Step(line, commands=rest))
            elif word == "file":
                file = rest
            elif word == "shows":
                found.append(Step(line, part=rest))
            elif piece["comment"].startswith("not run"):
                skipped = piece["comment"].strip().removeprefix("not run:").strip()
                if not skipped or skipped.startswith("not run"):
                    raise Mistake(f"{line}: say why the block is not run: <!-- not run: REASON -->")
            continue
        kind, block = piece["kind"], piece["block"]
        if kind in OTHER_SHELLS or (not kind and re.match(r"\s*\$ ", block)):
            raise Mistake(f"{line}: mark commands as `sh`, and what they print as `text`")
        if skipped and kind != "sh":
            raise Mistake(f"{line}: only blocks marked `sh` are run")
        if file:
            found.append(Step(line, commands=f"cat > {shlex.quote(file)} <<'WRITTEN-BY-THE-PAGE'\n{block}WRITTEN-BY-THE-PAGE"))
        elif kind == "sh":
            found.append(Step(line, skipped=skipped) if skipped else Step(line, commands=block))
        elif kind == "text":
            found.append(Step(line, lines=tuple(block.splitlines())))
        skipped = file = ""
    if skipped or file:
        raise Mistake(f"{text.count(chr(10))}: the last comment has no block that it is about")
    return found


def run(page: str, seconds: float, todo: list[Step]) -> bool:
    """Whether all commands succeed and print what the page shows."""
    script = ["set -euo pipefail", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"]
    for step in todo:
        script += [step.commands, f"printf '{MARK}'"]
    with tempfile.TemporaryDirectory() as place:
        # The page's HOME, so that it does not write to the user's.
        environment = os.environ | {"ROOT": str(ROOT), "HOME": place}
        command = ["timeout", "--kill-after=10", str(seconds), "bash", "-c", "\n".join(script)]
        ended = subprocess.run(command, cwd=place, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        logs = {log.name: log.read_text(encoding="utf-8")[-2000:] for log in sorted(pathlib.Path(place).rglob("*.log"))}
    printed = ended.stdout.split(MARK)
    passed, has_run = True, False
    for at, step in enumerate(todo):
        where, shown = f"{page}:{step.line}", "".join(printed[: at + 1])
        has_run |= bool(step.commands)
        # A page that runs nothing shows the output of others.
        missing = [line for line in step.lines if has_run and line not in shown.splitlines()]
        if step.part and step.part not in shown:
            missing.append(step.part)
        if at >= len(printed) - 1:
            reason = "it is not done in time" if ended.returncode in (124, 137) else f"a command ended with {ended.returncode}"
            print(f"FAIL {where.replace(':', ' line ')}: {reason}")
            passed = False
            break
        if missing:
            print(f"FAIL {where.replace(':', ' line ')}: this was not printed: {missing[0]}")
            passed = False
        elif step.skipped:
            print(f"skip {where}: {step.skipped}")
        elif has_run:
            print(f"ok {where}")
    if not passed:
        for name, said in {"printed": ended.stdout.replace(MARK, ""), "errors": ended.stderr, **logs}.items():
            print(f"== {name}", *(f"  {line}" for line in said.splitlines()), sep="\n")
    return passed


def main() -> int:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    page = pathlib.Path(sys.argv[1]).resolve()
    name = str(page.relative_to(ROOT)) if page.is_relative_to(ROOT) else page.name
    try:
        todo = steps(page.read_text(encoding="utf-8"))
    except Mistake as mistake:
        print(f"FAIL {name} line {mistake}")
        return 1
    return 0 if run(name, float(sys.argv[2]), todo) else 1


if __name__ == "__main__":
    sys.exit(main())
