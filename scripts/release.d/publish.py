"""How the parts are published. No command runs before everything is made and tried."""

import os
import shutil

import parts
from places import Wrong, run

NEEDED = ("git", "cargo", "skopeo", "twine", "gh")


def check(release):
    """Raises Wrong unless this is a clean checkout of the release's tag, with all that publishing needs."""
    tag = f"v{release.version}"
    tags = run(["git", "-C", release.root, "tag", "--points-at", "HEAD"]).split()
    if release.modified or tag not in tags:
        raise Wrong(f"what is published is a clean checkout of the tag {tag}: here is {release.revision}"
                    + (" with changes" if release.modified else ""))
    missing = [program for program in (*NEEDED, os.environ.get("HELM", "helm")) if not shutil.which(program)]
    if missing:
        raise Wrong(f"needs {', '.join(missing)}")


def commands(release, output):
    """In this order: a release page that names what is not there yet would mislead."""
    module = f"workers/go/v{release.version}"
    excluded = [word for name in parts.UNPUBLISHED for word in ("--exclude", name)]
    return [
        ["skopeo", "copy", "--all", f"oci-archive:{next(output.glob('*-image.tar'))}", f"docker://{release.image}:{release.version}"],
        [os.environ.get("HELM", "helm"), "push", next((output / "charts").glob("*.tgz")), release.charts],
        # Cargo packs them again: the same bytes, from the same commit.
        ["cargo", "publish", "--workspace", *excluded, "--locked"],
        ["twine", "upload", *sorted((output / "python").iterdir())],
        # Module proxies read the repository.
        ["git", "tag", module, release.revision],
        ["git", "push", "origin", module],
        ["gh", "release", "create", f"v{release.version}", "--verify-tag", "--generate-notes",
         *(path for path in parts.files_of(output) if path.parent == output)],
    ]


def printable(command, output):
    """The command as one line, with the folder's files by their names."""
    return " ".join(str(word).replace(f"{output}/", "") for word in command)


def run_shown(command):
    """Runs it, and shows what it says."""
    print("runs    " + " ".join(str(word) for word in command), flush=True)
    run(command, stdout=None, stderr=None)
