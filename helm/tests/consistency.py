#!/usr/bin/env python3
"""The chart's copies of facts from the repository are correct, and its package is complete."""
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import yaml

from chart import CHART, HELM, KUBERNETES, NAMESPACE, Report, render, value_files

ROOT = CHART.parent.parent

# Parts of the notes after an installation.
NOTES = {
    "trial": ["http://shoal-edge.mcp.svc:80/mcp", "the bundled Redis is for trials", "stateKeys.secret.name is not set", "kubectl delete job,secret"],
    "production": ["http://tools-edge.mcp.svc:80/mcp", "https://mcp.example.com/mcp"],
    "gateway": ["http://shoal-edge.mcp.svc:80/tools/mcp", "mcp.example.com/tools/mcp (by the Gateway)"],
    "plain": ["http://shoal-mcp-edge.mcp.svc:8080/mcp"],
}


def package():
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([HELM, "package", str(CHART), "--destination", directory], check=True, capture_output=True)
        (archive,) = Path(directory).glob("*.tgz")
        with tarfile.open(archive) as files:
            return {name.removeprefix("shoal/") for name in files.getnames()}


def notes(values):
    """The notes after an installation. `helm template` does not print them, so render them as a file in a copy of the chart."""
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory, "shoal")
        shutil.copytree(CHART, copy)
        (copy / "templates" / "NOTES.txt").rename(copy / "NOTES.txt")
        (copy / "templates" / "notes.yaml").write_text('text: {{ tpl (.Files.Get "NOTES.txt") . | toJson }}\n')
        words = ["--namespace", NAMESPACE, "--kube-version", KUBERNETES, "--values", str(values)]
        command = [HELM, "template", "shoal", str(copy), *words, "--show-only", "templates/notes.yaml"]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
        return yaml.safe_load(done.stdout)["text"]


def main():
    report = Report()
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    workspace = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.M)[1]
    report.say("appVersion is the release", [] if chart["appVersion"] == workspace else [f"it is {workspace}"])

    templates = "".join(path.read_text() for path in (CHART / "templates").glob("_autoscaling.tpl"))
    metrics = (ROOT / "docs" / "metrics.md").read_text()
    used = set(re.findall(r"\bshoal_\w+_\w+\b", templates)) - {"shoal_pool"}
    unknown = [name for name in sorted(used) if f"`{name}`" not in metrics]
    report.say(f"docs/metrics.md has {', '.join(sorted(used))}", unknown if used else ["no metric is used"])

    # Only existing settings are left out of the nodes' configuration.
    left_out = re.search(r"omit \(\.settings[^\n]*\n?[^-]*", (CHART / "templates" / "_config.tpl").read_text())[0]
    settings = (CHART / "values.schema.json").read_text()
    gone = [name for name in re.findall(r'"(\w+)"', left_out) if f'"{name}": {{' not in settings]
    report.say("settings of workers alone exist", gone)

    # The same for settings that a role does not read.
    left_out = re.findall(r'omit \$config[^\n]*(?:\n[^{\n]*"[^\n]*)?', (CHART / "templates" / "_reload.tpl").read_text())
    names = {name for text in left_out for name in re.findall(r'"(\w+)"', text)}
    gone = [name for name in sorted(names) if f'"{name}": {{' not in settings]
    report.say(f"tables and settings of some roles exist ({len(names)})", gone if names else ["none is found"])

    # Functions that render the same values differently. ADR 64 explains the two places that query the cluster.
    sources = {path.name: path.read_text() for path in (CHART / "templates").rglob("*") if path.is_file()}
    unsteady = re.compile(r"\.APIVersions|\bgen[A-Z]\w+|\brand[A-Z]\w+|\buuidv4\b|\bnow\b\s*\||\bhtpasswd\b|\bderivePassword\b")
    found = [f"{name}: {word}" for name, text in sources.items() for word in unsteady.findall(text)]
    found += [f"{name}: lookup" for name, text in sources.items() if re.search(r"\blookup\b \"", text) and name not in ("_checks.tpl", "deployments.yaml")]
    report.say("templates make the same of the same values", found)

    packed = package()
    expected = {str(path.relative_to(CHART)) for path in (CHART / "files").rglob("*.*")} | {"values.schema.json", "README.md"}
    missing = sorted(expected - packed)
    surplus = sorted(name for name in packed if name.startswith("ci/"))
    report.say("the package is whole", [f"without {name}" for name in missing] + [f"with {name}" for name in surplus])

    for name, parts in NOTES.items():
        text = notes(value_files()[name])
        report.say(f"{name}: notes", [f"{part!r} is not in: {text}" for part in parts if part not in text])

    for name, values in value_files().items():
        rendered = render(values)
        names = [(item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]) for item in rendered]
        twice = [f"{one[0]} {one[2]} twice" for one in set(names) if names.count(one) > 1]
        # The controller may read in other namespaces.
        elsewhere = [f"{item['kind']} is not in the namespace" for item in rendered
                     if item["metadata"].get("namespace") != NAMESPACE and not item["metadata"]["name"].endswith("-controller-reads-servers")]
        tests = [item for item in rendered if item["kind"] == "Pod"]
        wordy = [item["metadata"]["name"] for item in tests if len(item["spec"]["containers"]) != 1
                 or "hook-succeeded" in item["metadata"]["annotations"]["helm.sh/hook-delete-policy"]]
        report.say(f"{name}: helm test can show the logs", wordy if tests else ["there are no tests"])
        report.say(f"{name}: every object once, in the namespace", twice + elsewhere)
    report.end()


if __name__ == "__main__":
    main()
