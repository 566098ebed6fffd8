#!/usr/bin/env python3
"""Has the binary check every configuration file that the chart renders, with the environment of its pod.

    configuration.py BINARY

Secrets are made up: values of the environment by name, files below /run/secrets in a directory of this check, which is put
in their place.
"""
import base64
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from chart import Report, render, value_files

# What the binary says, where nothing else is wrong, of a server that the pool's own image brings.
BUILT_IN = "stands for a server that is built in"

FAKES = {
    "SHOAL_NODE__NAME": "shoal-0",
    "POD_IP": "10.0.0.7",
    "SHOAL_NODE__STORE": "redis://user:secret@redis:6379",
    "REDIS_PASSWORD": "secret",
    "API_KEY": "secret",
    "WEATHER_KEY": "secret",
    "SHOAL_AUTH__TOKENS": '[{ name = "alice", sha256 = "' + "ab" * 32 + '" }]',
}


def environment(container):
    """What Kubernetes would set, references to other variables included."""
    found = {}
    for variable in container["env"]:
        value = variable.get("value")
        if value is None:
            value = FAKES[variable["name"]]
        for name, other in found.items():
            value = value.replace(f"$({name})", other)
        found[variable["name"]] = value
    return found


def files(spec, directory):
    """Makes the files of the pod's Secrets below `directory`."""
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    for mount in spec["containers"][0]["volumeMounts"]:
        for item in volumes[mount["name"]].get("secret", {}).get("items", []):
            path = Path(directory, mount["mountPath"].lstrip("/"), item["path"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("a-secret-of-sufficient-length")


def with_certificates(text, spec, objects, directory):
    """The configuration with the files of a certificate that the chart has made, if it has: then they are checked too."""
    named = [volume["secret"]["secretName"] for volume in spec["volumes"] if volume["name"] == "tls"]
    secrets = [item for item in objects if item["kind"] == "Secret" and item["metadata"]["name"] in named]
    for secret in secrets:
        for name, content in secret["data"].items():
            Path(directory, name).write_bytes(base64.b64decode(content))
        text = text.replace('"/run/tls/', f'"{directory}/')
    return text, bool(secrets)


def check(binary, text, spec, objects):
    """What the binary says against the file; None if nothing."""
    container = spec["containers"][0]
    with tempfile.TemporaryDirectory() as directory:
        files(spec, directory)
        text, made = with_certificates(text, spec, objects, directory)
        path = Path(directory, "shoal.toml")
        path.write_text(text.replace('"/run/secrets/', f'"{directory}/run/secrets/'))
        variables = {"PATH": os.environ["PATH"], **environment(container), "SHOAL_CONFIG": str(path)}
        done = subprocess.run([binary, "config", "check"], env=variables, capture_output=True, text=True, timeout=30)
    if made and "/tls.crt" in done.stderr:
        return done.stderr.strip()
    if BUILT_IN in done.stderr:
        return None
    return None if done.returncode == 0 else (done.stderr.strip() or f"exit code {done.returncode}")


def knows_tls(binary):
    schema = subprocess.run([binary, "config", "schema"], check=True, capture_output=True, text=True).stdout
    return '"authority"' in schema


def main():
    binary, report = sys.argv[1], Report()
    tls = knows_tls(binary)
    for name, values in value_files().items():
        objects = render(values)
        maps = {item["metadata"]["name"]: item for item in objects if item["kind"] == "ConfigMap"}
        for item in objects:
            if item["kind"] != "Deployment":
                continue
            spec = item["spec"]["template"]["spec"]
            config = [volume for volume in spec["volumes"] if volume["name"] == "config"]
            if not config:
                continue
            title = f"{name}, {item['metadata']['name']}"
            text = maps[config[0]["configMap"]["name"]]["data"]["shoal.toml"]
            if "[cluster.tls]" in text and not tls:
                print(f"skip {title}: this binary has no cluster.tls")
                continue
            trouble = check(binary, text, spec, objects)
            report.say(title, [trouble] if trouble else [])
    report.end()


if __name__ == "__main__":
    main()
