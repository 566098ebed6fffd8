#!/usr/bin/env python3
"""Renders typical values of platforms: twice to the same bytes, valid, without duplicate keys for server-side apply, and with the intended
effect.

    platforms.py [VERSION]
"""
import sys
import tempfile
from pathlib import Path

import yaml

import expectations
from chart import CHART, Report, helm, parse, pods
from lists import all_twice
from sets import SETS, SUBCHART, TRIAL, merged
from validate import problems


def parent(directory):
    """A chart that depends on this one."""
    chart = Path(directory, "parent")
    (chart / "charts").mkdir(parents=True)
    (chart / "charts" / "shoal").symlink_to(CHART)
    about = {"apiVersion": "v2", "name": "parent", "version": "1.0.0",
             "dependencies": [{"name": "shoal", "version": ">=0.0.0", "condition": "shoal.enabled"}]}
    (chart / "Chart.yaml").write_text(yaml.dump(about))
    return chart


def rendered(values, chart, version):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.dump(values, file)
        file.flush()
        return helm("--values", file.name, "--kube-version", f"{version}.0", chart=chart)


def check(report, name, values, chart, version):
    first, second = (rendered(values, chart, version) for _ in range(2))
    if first.returncode != 0:
        report.say(name, [first.stderr.strip()])
        return
    try:
        objects = parse(first.stdout)
    except yaml.YAMLError as error:
        report.say(name, [str(error)])
        return
    wrong = [] if first.stdout == second.stdout else ["two renders differ"]
    wrong += [text for item in objects for text in problems(item, version)]
    wrong += all_twice(objects, version)
    wrong += [f"{pod}: {text}" for pod, spec in pods(objects) for text in expectations.everywhere(spec)]
    wrong += expectations.EXPECTED.get(name, lambda _: [])(expectations.Rendered(objects))
    report.say(f"{name} ({len(objects)} objects)", wrong)


def main():
    version = sys.argv[1] if len(sys.argv) > 1 else "1.34"
    report = Report()
    for name, values in SETS.items():
        check(report, name, merged(TRIAL, values), CHART, version)
    with tempfile.TemporaryDirectory() as directory:
        chart = parent(directory)
        for name, values in SUBCHART.items():
            check(report, name, merged({"shoal": TRIAL}, values), chart, version)
    unknown = set(expectations.EXPECTED) - set(SETS) - set(SUBCHART)
    report.say("every expectation is of a set", sorted(unknown))
    # Tests this check: it detects a duplicate variable.
    container = {"name": "a", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [container]}}
    report.say("a variable that comes twice is found", [] if list(all_twice([pod], version)) else ["it is not"])
    report.end()


if __name__ == "__main__":
    main()
