"""Tries each part from the folder: starts it, or installs it as its users do."""

import json
import os
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

import parts
from places import Wrong, run
from tools import EMULATORS


def binaries(release, output, options):
    """The binary of each archive prints its version."""
    said = []
    for architecture in options.architecture:
        emulator = [] if architecture == parts.HERE else [EMULATORS[architecture]]
        with tempfile.TemporaryDirectory() as work:
            with tarfile.open(next(output.glob(f"*-linux-{architecture}.tar.gz"))) as packed:
                packed.extractall(work)
            version = run([*emulator, next(Path(work).glob("*/shoal")), "--version"]).strip()
        if release.version not in version:
            raise Wrong(f"the binary for {architecture} says {version}, and the release {release.version}")
        said.append(f"{architecture} says {version}")
    return ", ".join(said)


def image(release, output, options):
    """This machine's image becomes ready and answers a call, isolated from this machine. The others have all their blobs."""
    packed = next(output.glob("*-image.tar"))
    unpack = [sys.executable, release.root / "deploy" / "lib" / "archive.py", "unpack", packed]
    said = []
    for architecture in options.architecture:
        with tempfile.TemporaryDirectory() as work:
            os.chmod(work, 0o755)
            run([*unpack, work, "--architecture", architecture])
            if architecture == parts.HERE:
                said.append(run([sys.executable, release.root / "deploy" / "lib" / "start.py", work]).strip())
            else:
                said.append(f"{architecture} unpacked")
    return ", ".join(said)


def chart(release, output, _options):
    """Helm renders and checks the archive, with the release's image."""
    packed = next((output / "charts").glob("*.tgz"))
    helm = os.environ.get("HELM", "helm")
    values = ["--set", f"image.repository={release.image}", "--set", "redis.url=redis://redis:6379",
              "--set", "config.auth.allow_anonymous=true"]
    run([helm, "lint", "--strict", packed, *values])
    rendered = run([helm, "template", "shoal", packed, *values, "--kube-version", "1.34.0"])
    expected = f"{release.image}:{release.version}"
    if expected not in rendered:
        raise Wrong(f"the chart does not run {expected}")
    return f"{rendered.count('kind: ')} objects that run {expected}"


def crates(release, output, _options):
    """Cargo compiles a program with the packed crates: each has all its files and declares its dependencies."""
    with tempfile.TemporaryDirectory() as work:
        names = []
        for packed in sorted((output / "crates").glob("*.crate")):
            with tarfile.open(packed) as content:
                content.extractall(work)
            names.append(packed.stem.removesuffix(f"-{release.version}"))
        patches = "".join(f'{name} = {{ path = "../{name}-{release.version}" }}\n' for name in names)
        author = Path(work, "author")
        (author / "src").mkdir(parents=True)
        (author / "src" / "main.rs").write_text("fn main() {}\n")
        (author / "Cargo.toml").write_text(
            f'[package]\nname = "author"\nversion = "0.0.0"\nedition = "2024"\n'
            f'[dependencies]\nshoal-mcp = "={release.version}"\nshoal-node = "={release.version}"\n[patch.crates-io]\n{patches}')
        shutil.copyfile(Path("Cargo.lock"), author / "Cargo.lock")
        manifest = ["--manifest-path", author / "Cargo.toml"]
        known = json.loads(run(["cargo", "metadata", "--format-version", "1", *manifest], stderr=None))
        local = {package["name"] for package in known["packages"] if package["source"] is None} - {"author"}
        if local != set(names):
            raise Wrong(f"of {sorted(names)} Cargo took {sorted(local)}")
        # In the workspace's target folder, which has the dependencies compiled.
        run(["cargo", "check", *manifest, "--target-dir", release.root / "target"], env=os.environ | {"CARGO_INCREMENTAL": "0"})
    return f"{len(names)} compile from the folder alone"


def python(release, output, options):
    """pip installs the wheel, and the installed package keeps the workers' contract."""
    with tempfile.TemporaryDirectory() as work:
        run([sys.executable, "-m", "venv", work])
        wheel = next((output / "python").glob("*.whl"))
        run([Path(work, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", wheel])
        return keeps_contract(output, options, [Path(work, "bin", "python"), release.root / "workers/python/tests/checked.py"])


def go(release, output, options):
    """Go uses the folder as a module proxy, and the built program keeps the workers' contract."""
    with tempfile.TemporaryDirectory() as work:
        fetched, proxies = run(["go", "env", "GOMODCACHE", "GOPROXY"]).split()
        own = {
            # Dependencies may come from this machine's cache, but this module comes from the folder.
            "GOPROXY": f"file://{output}/go,file://{fetched}/cache/download,{proxies}",
            "GONOSUMDB": release.go,
            "GOMODCACHE": f"{work}/modules",
            "GOFLAGS": "-modcacherw",
            "GOBIN": work,
        }
        run(["go", "install", f"{release.go}/internal/checked@v{release.version}"], env=os.environ | own)
        return keeps_contract(output, options, [Path(work, "checked")])


def keeps_contract(output, options, worker):
    """Runs `shoal worker-check` on a worker, and returns the last line of its report."""
    shoal = options.shoal or parts.binary_of(output, parts.HERE)
    return run([shoal, "worker-check", "--", *worker]).strip().splitlines()[-1]


ALL = {"binaries": binaries, "image": image, "chart": chart, "crates": crates, "python": python, "go": go}
