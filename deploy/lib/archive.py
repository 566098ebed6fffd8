"""Writes and unpacks image archives that Docker, Podman, Buildah and containerd load, without any of them.

An archive holds two descriptions of the same image: `manifest.json`, as `docker save` writes it, and the OCI
image layout. The same binary and date give the same bytes. `join` writes the images of several architectures as
one; that archive holds the OCI image layout alone.

    archive.py pack --binary FILE --rootfs DIR --certificates FILE --tag NAME:TAG --version V --revision R
                    --created SECONDS --output FILE.tar
    archive.py join FILE.tar… --created SECONDS --output FILE.tar
    archive.py unpack FILE.tar DIRECTORY [--architecture NAME]
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import struct
import sys
import tarfile
from datetime import datetime, timezone
from pathlib import Path

USER = "65532:65532"
PORTS = ("8080/tcp", "8081/tcp", "7000/tcp")
# The ELF header's machine, and its name in registries.
ARCHITECTURES = {0x3E: "amd64", 0xB7: "arm64"}
PT_INTERP = 3
OCI = "application/vnd.oci.image"
INDEX = f"{OCI}.index.v1+json"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    pack_it = commands.add_parser("pack")
    for name in ("binary", "rootfs", "certificates", "output"):
        pack_it.add_argument(f"--{name}", type=Path, required=True)
    for name in ("tag", "version", "revision"):
        pack_it.add_argument(f"--{name}", required=True)
    pack_it.add_argument("--created", type=int, required=True)
    pack_it.set_defaults(run=pack)
    unpack_it = commands.add_parser("unpack")
    unpack_it.add_argument("archive", type=Path)
    unpack_it.add_argument("directory", type=Path)
    unpack_it.add_argument("--architecture")
    unpack_it.set_defaults(run=lambda options: unpack(options.archive, options.directory, options.architecture))
    join_them = commands.add_parser("join")
    join_them.add_argument("archives", type=Path, nargs="+")
    join_them.add_argument("--created", type=int, required=True)
    join_them.add_argument("--output", type=Path, required=True)
    join_them.set_defaults(run=lambda options: join(options.archives, options.output, options.created))
    options = parser.parse_args()
    options.run(options)


def pack(options):
    binary = options.binary.read_bytes()
    architecture = static_architecture(options.binary, binary)
    files = {path.relative_to(options.rootfs).as_posix(): (path.read_bytes(), 0o644)
             for path in sorted(options.rootfs.rglob("*")) if path.is_file()}
    files["etc/ssl/certs/ca-certificates.crt"] = (options.certificates.read_bytes(), 0o644)
    # The binary has its own layer, above the ones that rarely change.
    layers = [layer(files, options.created),
              layer({"usr/local/bin/shoal": (binary, 0o755)}, options.created)]
    created = datetime.fromtimestamp(options.created, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    config = as_json({
        "architecture": architecture,
        "os": "linux",
        "created": created,
        "config": {
            "User": USER,
            "ExposedPorts": {port: {} for port in PORTS},
            "Env": ["PATH=/usr/local/bin"],
            "Entrypoint": ["/usr/local/bin/shoal"],
            "Cmd": ["serve"],
            "Labels": {
                "org.opencontainers.image.title": "shoal",
                "org.opencontainers.image.description": "One logical MCP server on many nodes",
                "org.opencontainers.image.source": "https://github.com/shoal-mcp/shoal",
                "org.opencontainers.image.licenses": "Apache-2.0",
                "org.opencontainers.image.version": options.version,
                "org.opencontainers.image.revision": options.revision,
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [digest(plain) for plain in layers]},
        "history": [{"created": created, "created_by": "deploy/image"} for _ in layers],
    })
    # No file name and no date in the header, so that the bytes are reproducible.
    packed = [gzip.compress(plain, compresslevel=6, mtime=0) for plain in layers]
    write(options, architecture, config, packed)


def write(options, architecture, config, layers):
    manifest = as_json({
        "schemaVersion": 2,
        "mediaType": f"{OCI}.manifest.v1+json",
        "config": descriptor(f"{OCI}.config.v1+json", config),
        "layers": [descriptor(f"{OCI}.layer.v1.tar+gzip", layer) for layer in layers],
    })
    name = full_name(options.tag)
    index = as_json({
        "schemaVersion": 2,
        "mediaType": INDEX,
        "manifests": [descriptor(f"{OCI}.manifest.v1+json", manifest) | {
            "platform": {"architecture": architecture, "os": "linux"},
            "annotations": {"io.containerd.image.name": name,
                            "org.opencontainers.image.ref.name": name.rsplit(":", 1)[1]},
        }],
    })
    docker = as_json([{"Config": blob(config), "RepoTags": [name], "Layers": [blob(layer) for layer in layers]}])
    files = {blob(content): (content, 0o644) for content in (config, manifest, *layers)}
    files |= {"oci-layout": (as_json({"imageLayoutVersion": "1.0.0"}), 0o644),
              "index.json": (index, 0o644), "manifest.json": (docker, 0o644)}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_bytes(layer(files, options.created))
    print(f"{name} linux/{architecture} {digest(manifest)}")


def full_name(tag):
    """The full form of a short name, by which containerd and Docker look it up."""
    if ":" not in tag.rsplit("/", 1)[-1]:
        tag += ":latest"
    first = tag.split("/", 1)[0]
    if "/" not in tag:
        return f"docker.io/library/{tag}"
    return tag if "." in first or ":" in first or first == "localhost" else f"docker.io/{tag}"


def static_architecture(path, binary):
    """The architecture of a static 64-bit ELF program; the image has no loader for other programs."""
    if binary[:4] != b"\x7fELF" or binary[4] != 2 or len(binary) < 64:
        sys.exit(f"{path} is no 64-bit Linux program: build one with deploy/build-static")
    machine = struct.unpack_from("<H", binary, 18)[0]
    offset = struct.unpack_from("<Q", binary, 32)[0]
    size, count = struct.unpack_from("<HH", binary, 54)
    kinds = [struct.unpack_from("<I", binary, offset + size * index)[0] for index in range(count)]
    if PT_INTERP in kinds:
        sys.exit(f"{path} needs a dynamic loader, which the image does not have: build it with deploy/build-static")
    if machine not in ARCHITECTURES:
        sys.exit(f"{path} is for ELF machine {machine:#x}; known are: {', '.join(ARCHITECTURES.values())}")
    return ARCHITECTURES[machine]


def layer(files, created):
    """A tar archive of the files and their directories, owned by root, with one date, sorted by name."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        directories = {parent.as_posix() for name in files for parent in Path(name).parents} - {"."}
        for name in sorted(directories | files.keys()):
            entry = tarfile.TarInfo(name)
            entry.mtime = created
            if name in files:
                content, entry.mode = files[name]
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
            else:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(entry)
    return buffer.getvalue()


def as_json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def digest(content):
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def blob(content):
    return f"blobs/sha256/{hashlib.sha256(content).hexdigest()}"


def descriptor(media_type, content):
    return {"mediaType": media_type, "digest": digest(content), "size": len(content)}


def join(archives, output, created):
    """Writes the images of several architectures as one."""
    blobs, manifests = {}, []
    for path in archives:
        with tarfile.open(path) as image:
            manifests += json.loads(read(image, "index.json"))["manifests"]
            blobs |= {entry.name: (read(image, entry.name), 0o644) for entry in image
                      if entry.isfile() and entry.name.startswith("blobs/")}
    named = manifests[0]["annotations"]
    # Tools that copy an archive take the single image in index.json.
    every = as_json({"schemaVersion": 2, "mediaType": INDEX, "manifests": [
        {key: value for key, value in manifest.items() if key != "annotations"} for manifest in manifests]})
    top = as_json({"schemaVersion": 2, "mediaType": INDEX, "manifests": [descriptor(INDEX, every) | {"annotations": named}]})
    files = blobs | {blob(every): (every, 0o644), "index.json": (top, 0o644),
                     "oci-layout": (as_json({"imageLayoutVersion": "1.0.0"}), 0o644)}
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_bytes(layer(files, created))


def unpack(archive, directory, architecture=None):
    """Makes the image's root file system. Supports only images that add files, as Shoal's do."""
    with tarfile.open(archive) as image:
        config, layers = contents(image, architecture)
        for name in layers:
            with tarfile.open(fileobj=io.BytesIO(read(image, name))) as content:
                options = {"filter": "tar"} if hasattr(tarfile, "tar_filter") else {}
                content.extractall(directory, **options)
    # Prints the entry point for the caller.
    print(json.dumps(config["config"]))


def contents(image, architecture):
    """The configuration and the names of the layers, of Docker's description or of one architecture's OCI image."""
    if architecture is None:
        manifest = json.loads(read(image, "manifest.json"))[0]
        return json.loads(read(image, manifest["Config"])), manifest["Layers"]
    described = json.loads(read(image, "index.json"))
    while described["mediaType"] == INDEX:
        fitting = [entry for entry in described["manifests"]
                   if entry["mediaType"] == INDEX or entry["platform"]["architecture"] == architecture]
        if not fitting:
            sys.exit(f"there is no image for {architecture}")
        described = referred(image, fitting[0])
    return referred(image, described["config"]), [place(entry["digest"]) for entry in described["layers"]]


def referred(image, entry):
    """The JSON of a descriptor. Ends the program if the blob's digest differs."""
    content = read(image, place(entry["digest"]))
    if digest(content) != entry["digest"]:
        sys.exit(f"{entry['digest']} is another blob")
    return json.loads(content)


def place(named):
    return "blobs/" + named.replace(":", "/")


def read(image, name):
    # Some builders write layers as links to one another.
    return image.extractfile(image.getmember(name)).read()


if __name__ == "__main__":
    os.umask(0o022)
    main()
