"""OpenAPI documents in npm packages of pinned versions; each is fetched once and verified."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


class Unavailable(Exception):
    """A package that cannot be fetched."""


def install(home: Path) -> dict[str, Path]:
    """The documents by name, PACKAGE/PATH. Fetches those missing below `home`."""
    documents = {}
    for package in json.loads((HERE / "packages.json").read_text()):
        directory = home / package["package"]
        stamp = directory / ".installed"
        if not stamp.exists() or stamp.read_text() != package["integrity"]:
            fetch(package, directory)
            stamp.write_text(package["integrity"])
        for pattern in package["documents"]:
            for file in sorted(directory.glob(pattern)):
                if file.suffix == ".gz":
                    file = unpacked(file)
                documents[str(file.relative_to(home))] = file
    return documents


def fetch(package: dict, directory: Path) -> None:
    """Without dependencies, because only the documents are used."""
    shutil.rmtree(directory, ignore_errors=True)
    name = f"{package['package']}@{package['version']}"
    with tempfile.TemporaryDirectory() as scratch:
        packed = subprocess.run(
            ["npm", "pack", name, "--ignore-scripts", "--json", "--pack-destination", scratch],
            capture_output=True, text=True, timeout=600, cwd=scratch,
        )
        if packed.returncode:
            raise Unavailable(f"npm cannot fetch {name}: {packed.stderr.strip()[-300:]}")
        (about,) = json.loads(packed.stdout)
        if about["integrity"] != package["integrity"]:
            raise Unavailable(f"{name} has another text than the one that was pinned")
        (tarball,) = Path(scratch).glob("*.tgz")
        directory.mkdir(parents=True)
        with tarfile.open(tarball) as archive:
            for member in archive:
                _, _, member.name = member.name.partition("/")
                if member.isfile() and member.name:
                    archive.extract(member, directory, filter="data")


def unpacked(file: Path) -> Path:
    plain = file.with_suffix("")
    if not plain.exists():
        plain.write_bytes(gzip.decompress(file.read_bytes()))
    return plain
