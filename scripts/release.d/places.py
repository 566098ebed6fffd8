"""The release: its version, and the names and places of deploy/release.json, which other files repeat."""

import json
import re
import subprocess
import tomllib

# Rust's target for each architecture of registries.
TARGETS = {"amd64": "x86_64-unknown-linux-gnu", "arm64": "aarch64-unknown-linux-gnu"}


class Wrong(Exception):
    """Why there is no release, and what to do."""


def run(command, **options):
    """Runs a command; shows its output only if it fails."""
    options = {"text": True, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "check": False} | options
    try:
        done = subprocess.run([str(word) for word in command], **options)
    except FileNotFoundError:
        raise Wrong(f"needs {command[0]}, which is not installed") from None
    if done.returncode:
        shown = "\n".join((done.stdout or "").splitlines()[-30:])
        raise Wrong(f"{' '.join(str(word) for word in command)} ended with {done.returncode}:\n{shown}")
    return done.stdout


class Release:
    """A release of the checked-out sources."""

    def __init__(self, root):
        self.root = root
        names = json.loads((root / "deploy" / "release.json").read_text())
        self.repository, self.image, self.charts = names["repository"], names["image"], names["charts"]
        self.python, self.go = names["python"], names["go"]
        self.version = self._found("Cargo.toml", r'^version = "(.*)"$')
        self.chart_version = self._found("helm/shoal/Chart.yaml", r"^version: (.*)$")
        self.revision = self._git("rev-parse", "HEAD")
        self.date = int(self._git("log", "-1", "--format=%ct"))
        # Uncommitted changes, including new files, because Cargo would pack them.
        self.modified = self._git("status", "--porcelain").replace("\n", ", ")
        workspace = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]
        self._depended = {name: how["version"] for name, how in workspace["dependencies"].items()
                          if isinstance(how, dict) and "path" in how}
        self._locked = {package["name"]: package["version"]
                        for package in tomllib.loads((root / "Cargo.lock").read_text())["package"] if "source" not in package}
        self.crates = sorted(self._locked)

    def check(self):
        """Raises Wrong unless all files that repeat a name agree."""
        stated = {
            ("Cargo.toml", r'^repository = "(.*)"$'): self.repository,
            ("helm/shoal/Chart.yaml", r"^home: (.*)$"): self.repository,
            ("helm/shoal/Chart.yaml", r'^appVersion: "(.*)"$'): self.version,
            ("deploy/compose.yaml", r"SHOAL_IMAGE:-shoal:([^}]*)}"): self.version,
            ("workers/python/pyproject.toml", r'^Repository = "(.*)"$'): self.repository,
            ("workers/python/pyproject.toml", r'^name = "(.*)"$'): self.python,
            ("workers/python/pyproject.toml", r'^version = "(.*)"$'): self.version,
            ("workers/go/go.mod", r"^module (.*)$"): self.go,
            ("deploy/lib/archive.py", r'image\.source": "(.*)"'): self.repository,
        }
        found = [(file, self._found(file, pattern), expected) for (file, pattern), expected in stated.items()]
        found += [(f"{name} in [workspace.dependencies] of Cargo.toml", version, self.version) for name, version in self._depended.items()]
        found += [(f"{name} in Cargo.lock", version, self.version) for name, version in self._locked.items()]
        for place, said, expected in found:
            if said != expected:
                raise Wrong(f"{place} says {said}, and the release {expected}: change one of them (deploy/release.json)")

    def _found(self, file, pattern):
        found = re.search(pattern, (self.root / file).read_text(), re.MULTILINE)
        if not found:
            raise Wrong(f"nothing in {file} matches {pattern}")
        return found.group(1)

    def _git(self, *words):
        return run(["git", "-C", self.root, *words]).strip()
