#!/usr/bin/env python3
"""Runs the commands of a page, as they stand there, in one shell; what it shows must come.

    run.py PAGE SECONDS [--section HEADING] [--server FILE]

Blocks marked `sh` are run, of the whole page or of one section, in a directory that is empty or has FILE as `server.py`. Each line
of a block marked `text` must be a line of what has been printed by then.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MARK = "\x1e"


def section(text: str, heading: str) -> str:
    """What is below the heading, up to the next one. Within a block, a line that begins with # is none."""
    parts = re.split(r"(^```.*?^```$|^#+ [^\n]*$)", text, flags=re.MULTILINE | re.DOTALL)
    titles = [at for at, part in enumerate(parts) if re.match("#+ ", part)]
    (begin,) = [at for at in titles if parts[at].lstrip("# ") == heading]
    return "".join(parts[begin + 1 : next((at for at in titles if at > begin), None)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page")
    parser.add_argument("seconds", type=float)
    parser.add_argument("--section")
    parser.add_argument("--server")
    args = parser.parse_args()
    page, seconds = args.page, args.seconds
    with open(page, encoding="utf-8") as file:
        text = file.read()
    if args.section:
        text = section(text, args.section)
    blocks = re.findall(r"^```(sh|text)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    if not any(kind == "sh" for kind, _ in blocks):
        sys.exit(f"{page} has no commands there")
    script = ["set -euo pipefail", "trap 'kill $(jobs -p) 2>/dev/null' EXIT"]
    expected = []
    for kind, block in blocks:
        if kind == "sh":
            script += [block, f"printf '{MARK}'"]
        else:
            expected.append((sum(MARK in line for line in script), block.splitlines()))
    with tempfile.TemporaryDirectory() as place:
        if args.server:
            shutil.copyfile(args.server, pathlib.Path(place, "server.py"))
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
