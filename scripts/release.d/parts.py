"""The parts of a release; one function makes each in the folder. The same sources give the same bytes."""

import argparse
import gzip
import hashlib
import io
import json
import os
import platform
import shutil
import tarfile
import tempfile
import zipfile
from datetime import datetime, timezone
from pathlib import Path

import archive
from places import TARGETS, Wrong, run

# The host's architecture, as registries call it.
HERE = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine())
SUMS = "SHA256SUMS"
# Crates that are not published.
UNPUBLISHED = ("shoal-testkit", "loadtest")


def empty(output):
    """Makes or empties the folder; raises Wrong if it contains anything but a release."""
    if output.exists() and not output.is_dir():
        raise Wrong(f"--output {output} is a file: name a folder")
    if output.exists() and any(output.iterdir()) and not (output / SUMS).is_file():
        raise Wrong(f"--output {output} holds something else than a release: name another folder, or empty it")
    if output.exists():
        shutil.rmtree(output)
    output.mkdir(parents=True)
    # After an interrupted run, the next run may empty the folder.
    (output / SUMS).write_text("")


def by_architecture(files):
    """Static binaries by architecture."""
    return {archive.static_architecture(file, file.read_bytes()): file for file in files}


def binary_of(output, architecture):
    """The path of the unpacked binary."""
    return output / "binaries" / architecture / "shoal"


def binaries(release, output, options):
    """Static binaries, each in an archive with licence and README."""
    given = by_architecture(options.binary)
    for architecture in options.architecture:
        binary = binary_of(output, architecture)
        binary.parent.mkdir(parents=True)
        if architecture in given:
            shutil.copyfile(given[architecture], binary)
            binary.chmod(0o755)
        else:
            print(f"builds  shoal for {architecture}, which takes 10 minutes on two cores", flush=True)
            run(["deploy/build-static", binary], env=os.environ | {"SHOAL_TARGET": TARGETS[architecture]})
        name = f"shoal-{release.version}-linux-{architecture}"
        files = {f"{name}/{file}": (Path(release.root, file).read_bytes(), 0o644) for file in ("LICENSE", "README.md")}
        files[f"{name}/shoal"] = (binary.read_bytes(), 0o755)
        packed(output / f"{name}.tar.gz", files, release.date)


def image(release, output, options):
    """One image for all architectures, as an OCI archive."""
    tag = f"{release.image}:{release.version}"
    with tempfile.TemporaryDirectory() as work:
        single = []
        for architecture in options.architecture:
            single.append(Path(work, f"{architecture}.tar"))
            run(["deploy/image", "--binary", binary_of(output, architecture), "--tag", tag, "--no-start", "--output", single[-1]])
        archive.join(single, output / f"shoal-{release.version}-image.tar", release.date)


def chart(release, output, _options):
    """The chart's archive, with the date of the sources instead of now, which `helm package` uses."""
    with tempfile.TemporaryDirectory() as work:
        run([os.environ.get("HELM", "helm"), "package", release.root / "helm" / "shoal", "--destination", work])
        made = Path(work, f"shoal-{release.chart_version}.tgz")
        with tarfile.open(made) as chart_archive:
            files = {entry.name: (chart_archive.extractfile(entry).read(), 0o644)
                     for entry in chart_archive.getmembers() if entry.isfile()}
    packed(output / "charts" / made.name, files, release.date)


def crates(release, output, _options):
    """The crates, packed by Cargo, without those for tests."""
    with tempfile.TemporaryDirectory() as work:
        excluded = [word for name in UNPUBLISHED for word in ("--exclude", name)]
        dirty = ["--allow-dirty"] if release.modified else []
        run(["cargo", "package", "--workspace", *excluded, "--no-verify", "--locked", *dirty, "--target-dir", work])
        (output / "crates").mkdir()
        for made in sorted(Path(work, "package").glob("*.crate")):
            shutil.copyfile(made, output / "crates" / made.name)


def python(release, output, _options):
    """The Python package for workers: a wheel and its sources."""
    with tempfile.TemporaryDirectory() as work:
        run(["python3", "-m", "venv", work])
        pip = Path(work, "bin", "pip")
        run([pip, "install", "--quiet", "--disable-pip-version-check", "build==1.3.0", "hatchling==1.27.0"])
        run([Path(work, "bin", "python"), "-m", "build", "--no-isolation", "--outdir", output / "python",
             release.root / "workers" / "python"])


def go(release, output, _options):
    """The Go module for workers, laid out as by a module proxy."""
    version = f"v{release.version}"
    home = output / "go" / release.go / "@v"
    home.mkdir(parents=True)
    source = "workers/go"
    names = run(["git", "-C", release.root, "ls-files", "-z", source]).strip("\0").split("\0")
    with zipfile.ZipFile(home / f"{version}.zip", "w", zipfile.ZIP_DEFLATED) as module:
        # A module contains its repository's licence.
        for name in sorted([*names, f"{source}/LICENSE"]):
            file = release.root / ("LICENSE" if name.endswith("/LICENSE") else name)
            # The first date that zip can store.
            entry = zipfile.ZipInfo(f"{release.go}@{version}/{name.removeprefix(source + '/')}", (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            module.writestr(entry, file.read_bytes())
    shutil.copyfile(release.root / source / "go.mod", home / f"{version}.mod")
    (home / f"{version}.info").write_text(json.dumps({"Version": version, "Time": at(release.date)}) + "\n")
    (home / "list").write_text(f"{version}\n")


def make_all(release, output, options):
    """Makes all parts and their papers in the folder."""
    for make in (binaries, image, chart, crates, python, go):
        make(release, output, options)
    papers(release, output, options)


def alike(release, output, options):
    """Makes everything again from the same binaries; raises Wrong if a byte differs."""
    with tempfile.TemporaryDirectory() as work:
        again = Path(work, "again")
        again.mkdir()
        options = argparse.Namespace(**vars(options) | {
            "binary": [binary_of(output, architecture) for architecture in options.architecture]})
        make_all(release, again, options)
        first, second = (Path(made, SUMS).read_text().splitlines() for made in (output, again))
    if first != second:
        different = sorted({line.split()[1] for line in set(first) ^ set(second)})
        raise Wrong(f"made again, these differ: {', '.join(different)}")
    return f"the same {len(first)} files, byte by byte"


def papers(release, output, options):
    """Writes the SBOMs, the provenance, and the digests of all files."""
    (output / SUMS).unlink(missing_ok=True)
    (output / f"shoal-{release.version}.cdx.json").write_text(run(["scripts/sbom"], stderr=None))
    (output / f"shoal-{release.version}-image.cdx.json").write_text(run(["scripts/sbom", "--image"], stderr=None))
    # The archives contain them.
    kept = [(path, digest(path)) for path in files_of(output)]
    (output / f"shoal-{release.version}.provenance.json").write_text(provenance(release, kept, options))
    sums = [(path, digest(path)) for path in files_of(output)]
    (output / SUMS).write_text("".join(f"{sha}  {path.relative_to(output)}\n" for path, sha in sums))


def provenance(release, files, options):
    """An unsigned in-toto statement with SLSA's predicate."""
    # GitHub's name of the running workflow: OWNER/REPOSITORY/.github/workflows/FILE@REF.
    workflow = os.environ.get("GITHUB_WORKFLOW_REF")
    builder = f"https://github.com/{workflow}" if workflow else f"{release.repository}/blob/main/scripts/release"
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": path.name, "digest": {"sha256": sha}} for path, sha in files],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{release.repository}/blob/main/scripts/release",
                "externalParameters": {
                    "version": release.version,
                    "modified": bool(release.modified),
                    "architectures": options.architecture,
                    "binaries": "given" if options.given else "built",
                },
                "internalParameters": {"SOURCE_DATE_EPOCH": release.date},
                "resolvedDependencies": [
                    {"uri": f"git+{release.repository}@refs/tags/v{release.version}", "digest": {"gitCommit": release.revision}},
                    {"uri": "Cargo.lock", "digest": {"sha256": digest(release.root / "Cargo.lock")}},
                ],
            },
            "runDetails": {"builder": {"id": builder}},
        },
    }
    return json.dumps(statement, indent=2) + "\n"


def files_of(output):
    """All files except the unpacked binaries."""
    return sorted(path for path in output.rglob("*") if path.is_file() and output / "binaries" not in path.parents)


def total(output):
    """The number of files, and their size."""
    files = files_of(output)
    return f"{len(files)} files, {sum(path.stat().st_size for path in files) / 1e6:.0f} MB"


def packed(path, files, date):
    """Writes a .tar.gz without the present date."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(archive.layer(files, date), compresslevel=9, mtime=0))


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def at(seconds):
    """A date in the format of Go's proxies."""
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
