#!/usr/bin/env python3
"""Has a package manager pick versions as it would for a user, and prints those of what is named.

    pick.py author DIRECTORY SHOAL   makes a crate with `cargo add`: the crate SHOAL (crates/shoal) and what its examples need
    pick.py rmcp DIRECTORY           cargo, of interop/rmcp: the newest rmcp, with what it needs
    pick.py pip DIRECTORY PIP        requirements.txt anew, for the package that its first line names
    pick.py npm DIRECTORY            package.json and the lock file anew
    pick.py go DIRECTORY             go.mod anew
"""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def run(*words: str, cwd: pathlib.Path) -> str:
    """Runs a command and returns its output; ends this program if it fails."""
    return subprocess.run(words, cwd=cwd, check=True, stdout=subprocess.PIPE, text=True).stdout


def author(directory: pathlib.Path, shoal: str) -> dict[str, str]:
    shutil.rmtree(directory, ignore_errors=True)
    run("cargo", "init", "--quiet", "--vcs", "none", "--bin", "--name", "author", str(directory), cwd=directory.parent)
    for added in (
        ["shoal-mcp", "--path", shoal],
        ["rmcp", "--features", "elicitation"],
        ["schemars"],
        ["serde", "--features", "derive"],
        ["tokio", "--features", "full"],
    ):
        run("cargo", "add", "--quiet", *added, cwd=directory)
    programs = directory / "src" / "bin"
    programs.mkdir()
    for example in pathlib.Path(shoal, "examples").glob("*.rs"):
        shutil.copy(example, programs)
    (directory / "src" / "main.rs").unlink()
    run("cargo", "generate-lockfile", cwd=directory)
    named = run("cargo", "tree", "--depth", "1", "--prefix", "none", "--edges", "normal", cwd=directory)
    return {name: version for name, version in re.findall(r"^(\S+) v(\S+)$", named, re.MULTILINE)}


def rmcp(directory: pathlib.Path) -> dict[str, str]:
    manifest = directory / "Cargo.toml"
    text, count = re.subn(r'^(rmcp = \{ version = )"[^"]*"', r'\1"*"', manifest.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if count != 1:
        sys.exit(f"{manifest} does not name rmcp as expected")
    manifest.write_text(text, encoding="utf-8")
    run("cargo", "update", cwd=directory)
    (version,) = re.findall(r'^name = "rmcp"\nversion = "(.*)"', (directory / "Cargo.lock").read_text(encoding="utf-8"), re.MULTILINE)
    return {"rmcp": version}


def pip(directory: pathlib.Path, program: str) -> dict[str, str]:
    requirements = directory / "requirements.txt"
    first = requirements.read_text(encoding="utf-8").partition("\n")[0]
    (package,) = re.findall(r"pip install (\S+?)==", first)
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as report:
        options = ["--quiet", "--disable-pip-version-check", "--dry-run", "--ignore-installed", "--report", report.name]
        run(program, "install", *options, package, cwd=directory)
        picked = {one["metadata"]["name"]: one["metadata"]["version"] for one in json.load(report)["install"]}
    lines = [first, *(f"{name}=={version}" for name, version in sorted(picked.items()))]
    requirements.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {package: picked[package]}


def npm(directory: pathlib.Path) -> dict[str, str]:
    manifest = directory / "package.json"
    names = json.loads(manifest.read_text(encoding="utf-8"))["dependencies"]
    (directory / "package-lock.json").unlink(missing_ok=True)
    options = ["--package-lock-only", "--save-exact", "--ignore-scripts", "--no-audit", "--no-fund"]
    run("npm", "install", *options, *(f"{name}@latest" for name in names), cwd=directory)
    return json.loads(manifest.read_text(encoding="utf-8"))["dependencies"]


def go(directory: pathlib.Path) -> dict[str, str]:
    run("go", "get", "-u", "./...", cwd=directory)
    run("go", "mod", "tidy", cwd=directory)
    named = json.loads(run("go", "mod", "edit", "-json", cwd=directory))["Require"]
    return {one["Path"]: one["Version"] for one in named if not one.get("Indirect")}


if __name__ == "__main__":
    how, where, *rest = sys.argv[1:] or sys.exit(__doc__)
    picked = {"author": author, "rmcp": rmcp, "pip": pip, "npm": npm, "go": go}[how](pathlib.Path(where).resolve(), *rest)
    print(", ".join(f"{name} {version}" for name, version in picked.items()))
