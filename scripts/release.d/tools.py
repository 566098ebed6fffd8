"""The programs for making and trying a release. The check comes before the first build, which takes minutes."""

import os
import shutil
import sys

import parts
from places import TARGETS, Wrong, run

# The emulators that run programs of another architecture.
EMULATORS = {"amd64": "qemu-x86_64-static", "arm64": "qemu-aarch64-static"}


def check(options):
    """Raises Wrong with all missing programs, and how to get them."""
    helm = os.environ.get("HELM", "helm")
    needed = {"cargo": "https://rustup.rs", "go": "https://go.dev/dl", helm: "https://helm.sh/docs/intro/install"}
    for architecture in options.architecture:
        if architecture == parts.HERE:
            continue
        needed[EMULATORS[architecture]] = f"apt-get install qemu-user-static, or leave {architecture} out by --architecture"
        if not options.given:
            compiler = f"gcc-{TARGETS[architecture].replace('-unknown', '').replace('_', '-')}"
            needed[f"{TARGETS[architecture].replace('-unknown', '')}-gcc"] = f"apt-get install {compiler}"
    missing = [f"{program} ({how})" for program, how in needed.items() if not shutil.which(program)]
    if not options.given and (target := _lacking_target(options.architecture)):
        missing.append(f"Rust's target {target} (rustup target add {target})")
    if not _has_venv():
        missing.append("Python's venv with pip (apt-get install python3-venv)")
    if os.geteuid() and not _may_unshare():
        missing.append("root, or user namespaces, to start the image (on Ubuntu: sysctl kernel.apparmor_restrict_unprivileged_userns=0)")
    if missing:
        raise Wrong("needs " + "\n                 ".join(missing))


def _lacking_target(architectures):
    installed = run(["rustc", "--print", "sysroot"]).strip()
    for architecture in architectures:
        target = TARGETS[architecture]
        if not os.path.isdir(os.path.join(installed, "lib", "rustlib", target, "lib")):
            return target
    return None


def _has_venv():
    try:
        run([sys.executable, "-c", "import ensurepip, venv"])
    except Wrong:
        return False
    return True


def _may_unshare():
    try:
        run(["unshare", "--user", "--map-root-user", "--mount", "true"])
    except Wrong:
        return False
    return True
