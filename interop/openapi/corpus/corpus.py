"""Converts many OpenAPI documents to tools and prints what became of them.

    corpus.py --preview PROGRAM --home DIRECTORY [--sample | --every N] [--only TEXT] [--json FILE]

PROGRAM is the example `openapi_preview` of the crate shoal-worker, which runs once for each document. Ends with exit code 1
where a document with operations does not start, a list is refused, or fewer operations become tools than GOAL says.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from packages import HERE, Unavailable, install

METHODS = ("get", "put", "post", "delete", "patch", "head")
# The required share of operations that become tools.
GOAL = 0.995
# Timeout of a document in seconds.
PATIENCE = 120
BIG = 1_000_000
# Maximum printed findings of one kind.
SHOWN = 8
INTEROP = HERE.parent.parent


def main() -> int:
    options = arguments()
    try:
        documents = install(Path(options.home))
    except Unavailable as error:
        print(error, file=sys.stderr)
        return 1
    chosen = choose(documents, options)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(options.jobs) as pool:
        numbered = [(at, name, documents[name]) for at, name in enumerate(chosen)]
        reports = list(pool.map(lambda one: convert(options.preview, Path(scratch), *one), numbered))
        refused = read_by_clients(options, [report["list"] for report in reports if "list" in report])
        by_list = {report.get("list"): report["document"] for report in reports}
        for refusal in refused:
            refusal["document"] = by_list[refusal.pop("file")]
    if options.json:
        Path(options.json).write_text(json.dumps({"reports": reports, "refused": refused}, indent=1))
    return tell(reports, refused)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Converts many OpenAPI documents to tools.")
    parser.add_argument("--preview", required=True, help="the program that converts one document")
    parser.add_argument("--home", required=True, help="where the packages with the documents are kept")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has the Python SDK")
    parser.add_argument("--sample", action="store_true", help="only the documents of sample.txt")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each N-th document")
    parser.add_argument("--only", default="", metavar="TEXT", help="only documents with this text in their names")
    parser.add_argument("--no-clients", action="store_true", help="do not have the lists read by the SDKs")
    parser.add_argument("--json", metavar="FILE", help="write everything that was found there")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    return parser.parse_args()


def choose(documents: dict[str, Path], options: argparse.Namespace) -> list[str]:
    names = list(documents)
    if options.sample:
        names = (HERE / "sample.txt").read_text().split()
    return [name for name in names[:: options.every] if options.only in name]


def convert(preview: str, scratch: Path, at: int, name: str, file: Path) -> dict:
    """Converts a document and returns the program's report."""
    listed = scratch / f"{at}.json"
    report = {"document": name, "started": False}
    try:
        ran = subprocess.run([preview, str(file), str(listed)], capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return report | {"operations": operations_of(file, {}), "why": f"it takes more than {PATIENCE} s"}
    if ran.returncode:
        return report | {"operations": operations_of(file, {}), "why": f"the program failed: {ran.stderr[-300:]}"}
    report |= json.loads(ran.stdout) | {"document": name}
    report["operations"] = operations_of(file, report)
    if listed.exists():
        report["list"] = str(listed)
    return report


def operations_of(file: Path, report: dict) -> int:
    """The operations of a JSON document, counted without Shoal."""
    try:
        paths = json.loads(file.read_text(encoding="utf-8-sig")).get("paths") or {}
    except ValueError:
        return report.get("tools", 0) + sum(report.get("left_out", {}).values())
    items = [item for item in paths.values() if isinstance(item, dict)]
    return sum(isinstance(item.get(method), dict) for item in items for method in METHODS)


def read_by_clients(options: argparse.Namespace, lists: list[str]) -> list[dict]:
    """The lists that the SDKs refuse."""
    if options.no_clients:
        return []
    readers = [["node", str(HERE / "lists.mjs")]] * max(1, options.jobs - 1) + [[options.python, "-B", str(HERE / "lists.py")]]
    shares = [lists[at :: len(readers) - 1] for at in range(len(readers) - 1)] + [lists]
    with ThreadPoolExecutor(len(readers)) as pool:
        return [refusal for found in pool.map(read_by, readers, shares) for refusal in found]


def read_by(reader: list[str], lists: list[str]) -> list[dict]:
    ran = subprocess.run(reader, input="\n".join(lists), capture_output=True, text=True)
    if ran.returncode:
        raise SystemExit(f"{reader[-1]} failed: {ran.stderr[-2000:]}")
    return [json.loads(line) for line in ran.stdout.splitlines()]


def tell(reports: list[dict], refused: list[dict]) -> int:
    """Prints the figures, and returns the exit code."""
    with_operations = [report for report in reports if report["operations"]]
    started = [report for report in with_operations if report["started"]]
    operations = sum(report["operations"] for report in with_operations)
    tools = sum(report["tools"] for report in started)
    wrong = [found | {"document": report["document"]} for report in started for found in report["wrong"]]
    kinds = Counter(found["kind"] for found in wrong + refused)
    print(f"documents                        {len(reports)}, of which {len(with_operations)} have operations")
    print(f"started                          {len(started)}")
    print(f"operations                       {operations}")
    print(f"tools                            {tools} ({tools / max(1, operations):.2%})")
    print(f"with an outputSchema             {sum(report['structured'] for report in started)}")
    print(f"schemas in less detail           {sum(report['cut'] for report in started)}")
    print(f"illegal names of tools           {kinds['name']}")
    print(f"illegal names of arguments       {kinds['key']}")
    print(f"schemas that models refuse       {kinds['model']}")
    print(f"schemas that do not compile      {kinds['meta'] + kinds['compile']} (jsonschema), {kinds['ajv']} (ajv)")
    print(f"lists refused by TypeScript      {kinds['typescript-v1'] + kinds['typescript']}")
    print(f"lists refused by Python          {kinds['python']}, schemas {kinds['python-schema']}")
    print(f"lists over 1 MB                  {sum(report['bytes'] > BIG for report in started)}")
    for what, of, unit in (("conversion", "seconds", "s"), ("memory", "memory", "MB"), ("list", "bytes", "B")):
        found = sorted(report[of] for report in started)
        print(f"{what:<12} p50, p99, most      {', '.join(f'{at(found, share):.6g}' for share in (0.5, 0.99, 1))} {unit}")
    for title, reasons in (("not started", not_started(with_operations)), ("operations left out", left_out(started))):
        for reason, count in reasons.most_common(25):
            print(f"{title}: {count:>6}  {reason}")
    shown = Counter()
    for found in wrong + refused:
        shown[found["kind"]] += 1
        if shown[found["kind"]] > SHOWN:
            continue
        print(f"{found['document']}: {found['kind']} {found['tool']}: {found['what']}")
    good = len(started) == len(with_operations) and not wrong and not refused and tools >= GOAL * operations
    return 0 if good else 1


def at(found: list[float], share: float) -> float:
    return found[min(len(found) - 1, int(len(found) * share))] if found else 0


def not_started(reports: list[dict]) -> Counter:
    return Counter(general(report["why"]) for report in reports if not report["started"])


def left_out(reports: list[dict]) -> Counter:
    reasons = Counter()
    for report in reports:
        for reason, count in report["left_out"].items():
            reasons[general(reason)] += count
    return reasons


def general(reason: str) -> str:
    """A reason without quoted names."""
    return re.sub(r'"(?:[^"\\]|\\.)*"|`[^`]*`|\d+', "…", reason)[:160]


if __name__ == "__main__":
    sys.exit(main())
