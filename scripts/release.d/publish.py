"""Publishes the parts from the folder in which they were made and tried."""

import json
import os
import shutil

import parts
from places import TARGETS, Wrong, run

NEEDED = ("git", "cargo", "skopeo", "twine", "gh")


def check(release, output):
    """Raises Wrong unless this is a clean checkout of the release's tag, the folder was made from it, and all tools exist."""
    tag = f"v{release.version}"
    tags = run(["git", "-C", release.root, "tag", "--points-at", "HEAD"]).split()
    if release.modified or tag not in tags:
        raise Wrong(f"publishing needs a clean checkout of the tag {tag}, and here is {release.revision}"
                    + (f" with changes: {release.modified}" if release.modified else ""))
    _check_folder(release, output)
    missing = [program for program in (*NEEDED, os.environ.get("HELM", "helm")) if not shutil.which(program)]
    if missing:
        raise Wrong(f"needs {', '.join(missing)}")


def _check_folder(release, output):
    again = "run scripts/release --dry-run"
    paper = output / f"shoal-{release.version}.provenance.json"
    if not paper.is_file():
        raise Wrong(f"{output} holds no release {release.version}: {again}")
    stated = dict(reversed(line.split("  ", 1)) for line in (output / parts.SUMS).read_text().splitlines())
    found = {str(path.relative_to(output)): parts.digest(path) for path in parts.files_of(output) if path.name != parts.SUMS}
    if stated != found:
        names = sorted({name for name, _ in stated.items() ^ found.items()})
        raise Wrong(f"{output} is not as it was made ({', '.join(names)}): {again}")
    definition = json.loads(paper.read_text())["predicate"]["buildDefinition"]
    made = definition["externalParameters"] | {"revision": definition["resolvedDependencies"][0]["digest"]["gitCommit"]}
    expected = {"version": release.version, "modified": False, "architectures": sorted(TARGETS), "binaries": "built",
                "revision": release.revision}
    for name, value in expected.items():
        if made[name] != value:
            raise Wrong(f"{output} was made with {name} {made[name]}, and publishing needs {value}: {again} without --binary "
                        "and --architecture, from this commit")


def commands(release, output):
    """Publishes the parts before the release page, which must not name a missing one."""
    tag = f"v{release.version}"
    excluded = [word for name in parts.UNPUBLISHED for word in ("--exclude", name)]
    pages = [path for path in parts.files_of(output) if path.parent == output]
    return [
        ["skopeo", "copy", "--all", f"oci-archive:{next(output.glob('*-image.tar'))}", f"docker://{release.image}:{release.version}"],
        [os.environ.get("HELM", "helm"), "push", next((output / "charts").glob("*.tgz")), release.charts],
        # Cargo packs them again: the same bytes from the same commit.
        ["cargo", "publish", "--workspace", *excluded, "--locked"],
        ["twine", "upload", "--skip-existing", *sorted((output / "python").iterdir())],
        # Module proxies read the repository.
        ["git", "push", "origin", f"{release.revision}:refs/tags/workers/go/{tag}"],
        ["gh", "release", "create", tag, "--verify-tag", "--generate-notes", *pages],
    ]


def left(planned, release):
    """Skips commands whose result is published already. The others can be repeated without an error."""
    for command in planned:
        if command[:2] == ["cargo", "publish"]:
            there = [name for name in release.crates if name not in parts.UNPUBLISHED and _is_on_crates_io(name, release.version)]
            if len(there) + len(parts.UNPUBLISHED) == len(release.crates):
                continue
            command = [*command, *(word for name in there for word in ("--exclude", name))]
        elif command[:3] == ["gh", "release", "create"] and _succeeds(["gh", "release", "view", command[3]]):
            command = ["gh", "release", "upload", command[3], "--clobber", *command[6:]]
        yield command


def _is_on_crates_io(name, version):
    return _succeeds(["cargo", "info", "--quiet", "--registry", "crates-io", f"{name}@{version}"])


def _succeeds(command):
    try:
        run(command)
    except Wrong:
        return False
    return True


def printable(command, output):
    """The command as one line, with file names relative to the folder."""
    return " ".join(str(word).replace(f"{output}/", "") for word in command)


def run_shown(command):
    """Runs the command and shows its output."""
    print("runs    " + " ".join(str(word) for word in command), flush=True)
    run(command, stdout=None, stderr=None)
