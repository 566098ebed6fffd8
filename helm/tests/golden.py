#!/usr/bin/env python3
"""Compares what the chart renders with golden/, object by object.

    golden.py            says what differs
    golden.py --update   takes what is rendered for right; look at the difference before you commit it

Objects are written with sorted keys, so that releases of Helm make no difference. Alerts and dashboards, which are files of
deploy/, stand there by their digest. What the chart makes at random stands there by its name.
"""
import difflib
import hashlib
import sys

import yaml

from chart import HERE, Dumper, Report, render, value_files

GOLDEN = HERE / "golden"


def digest(text):
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def shortened(item):
    if item["kind"] == "ConfigMap" and "data" in item:
        item["data"] = {name: digest(text) if name.endswith(".json") else text for name, text in item["data"].items()}
    if item["kind"] == "PrometheusRule":
        item["spec"] = digest(yaml.dump(item["spec"], Dumper=Dumper))
    return item


class Lines(Dumper):
    """Writes texts of several lines as such: a configuration file can be read in a difference."""


Lines.add_representer(str, lambda dumper, text: dumper.represent_scalar(
    "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None))


def rendered(values):
    objects = sorted(map(shortened, render(values)), key=lambda item: (item["kind"], item["metadata"]["name"], item["metadata"].get("namespace", "")))
    return yaml.dump_all(objects, Dumper=Lines, width=1000)


def main():
    update = sys.argv[1:] == ["--update"]
    report = Report()
    files = {GOLDEN / f"{name}.yaml": values for name, values in value_files().items()}
    for path, values in files.items():
        now = rendered(values)
        if update:
            path.write_text(now)
        before = path.read_text() if path.exists() else ""
        changes = difflib.unified_diff(before.splitlines(), now.splitlines(), path.name, "rendered", lineterm="", n=1)
        changes = list(changes)
        report.say(path.stem, ["differs; if it should, run helm/tests/golden.py --update"] if changes else [])
        print("\n".join(changes[:60]), end="\n" if changes else "")
    for path in set(GOLDEN.glob("*")) - set(files):
        report.say(path.name, ["there is no such value file in helm/shoal/ci: remove it"])
    report.end()


if __name__ == "__main__":
    main()
