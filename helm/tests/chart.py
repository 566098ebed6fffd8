"""Renders the chart as `helm template` does, for these checks."""
import os
import subprocess
import sys
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
CHART = HERE.parent / "shoal"
RELEASE, NAMESPACE = "shoal", "mcp"
# The version to render for, if it makes no difference.
KUBERNETES = "1.34.0"
HELM = os.environ.get("HELM", "helm")

# The C loader is several times faster, if PyYAML has it.
class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """Refuses duplicate keys, as Kubernetes does."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value]
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            raise yaml.YAMLError(f"{', '.join(sorted(twice))} twice in one map, {node.start_mark}")
        return super().construct_mapping(node, deep)


Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def value_files():
    """The chart's value files for tests, by name."""
    return {path.name.removesuffix("-values.yaml"): path for path in sorted((CHART / "ci").glob("*-values.yaml"))}


def helm(*words, chart=CHART):
    """Runs `helm template` with these arguments."""
    command = [HELM, "template", RELEASE, str(chart), "--namespace", NAMESPACE, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def parse(text):
    return [part for part in yaml.load_all(text, Loader) if part]


def render(values, kubernetes=KUBERNETES, sets=()):
    """The rendered objects of a value file."""
    words = ["--values", str(values), "--kube-version", kubernetes]
    for one in sets:
        words += ["--set", one]
    done = helm(*words)
    if done.returncode != 0:
        sys.exit(f"FAIL {values.name}: {done.stderr.strip()}")
    try:
        return parse(done.stdout)
    except yaml.YAMLError as error:
        sys.exit(f"FAIL {values.name}: {error}")


def pods(objects):
    """(name, spec) of every pod in the objects."""
    for item in objects:
        name = f"{item['kind']}/{item['metadata']['name']}"
        if item["kind"] == "Pod":
            yield name, item["spec"]
        elif "template" in item.get("spec", {}):
            yield name, item["spec"]["template"]["spec"]


class Report:
    """One line for each check, as scripts/lib/report.sh counts them."""

    def __init__(self):
        self.failed = 0

    def say(self, name, reasons):
        """`reasons` says why the check failed; empty if it passed."""
        if reasons:
            self.failed += 1
            print(f"FAIL {name}: {'; '.join(reasons)}")
        else:
            print(f"ok {name}")

    def end(self):
        sys.exit(1 if self.failed else 0)
