#!/usr/bin/env python3
"""Runs the commands of a page, as they stand there, in one shell; what it shows must come.

    run.py PAGE SECONDS

Blocks marked `sh` are run. Each line of a block marked `text` must be a line of what has been printed by then.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

MARK = "\x1e"


def main() -> int:
    page, seconds = sys.argv[1], float(sys.argv[2])
    with open(page, encoding="utf-8") as file:
        blocks = re.findall(r"^```(sh|text)\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
    script = ["set -euo pipefail", "trap 'kill $(jobs -p) 2>/dev/null' EXIT"]
    expected = []
    for kind, text in blocks:
        if kind == "sh":
            script += [text, f"printf '{MARK}'"]
        else:
            expected.append((sum(MARK in line for line in script), text.splitlines()))
    with tempfile.TemporaryDirectory() as place:
        command = ["timeout", "--kill-after=10", str(seconds), "bash", "-c", "\n".join(script)]
        run = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
        print(run.stdout.replace(MARK, ""), run.stderr, sep="\n")
        if run.returncode:
            for log in sorted(pathlib.Path(place).rglob("*.log")):
                print(f"== {log.name}", log.read_text(encoding="utf-8")[-2000:], sep="\n")
    printed = run.stdout.split(MARK)
    missing = [
        line for after, lines in expected for line in lines if line not in "".join(printed[:after]).splitlines()
    ]
    for line in missing:
        print(f"{page} shows a line that did not come: {line}")
    if run.returncode:
        print(f"the commands ended with status {run.returncode}")
    return 1 if missing or run.returncode else 0


sys.exit(main())
