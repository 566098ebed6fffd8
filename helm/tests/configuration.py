#!/usr/bin/env python3
"""Lets the binary check every configuration file that the chart renders, with its pod's environment.

    configuration.py BINARY

Secrets are made up: variables by name, files below /run/secrets in a directory of this check. The same holds for files beside the
configuration in its ConfigMap.
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from chart import Report, render, value_files
from sets import SETS, TRIAL, merged

# The binary's message about a server in the pool's own image, if the configuration is otherwise valid.
BUILT_IN = "stands for a server that is built in"

FAKES = {
    "SHOAL_NODE__NAME": "shoal-0",
    "POD_IP": "10.0.0.7",
    "SHOAL_NODE__STORE": "redis://redis:6379",
    "REDIS_PASSWORD": "secret",
    "API_KEY": "secret",
    "WEATHER_KEY": "secret",
}
# Contents of Secrets' files by name; all others contain a secret.
FILES = {"tokens.toml": '[[tokens]]\nname = "alice"\nsha256 = "' + "ab" * 32 + '"\n'}


def environment(container):
    """The pod's variables, with references to other variables resolved."""
    found = {}
    for variable in container["env"]:
        value = variable.get("value")
        if value is None:
            value = FAKES[variable["name"]]
        for name, other in found.items():
            value = value.replace(f"$({name})", other)
        found[variable["name"]] = value
    return found


def files(spec, maps, directory):
    """Writes the files of the pod's Secrets and ConfigMaps below `directory`."""
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    for mount in spec["containers"][0]["volumeMounts"]:
        for item in volumes[mount["name"]].get("secret", {}).get("items", []):
            path = Path(directory, mount["mountPath"].lstrip("/"), item["path"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(FILES.get(item["path"], "a-secret-of-sufficient-length"))
        of_map = volumes[mount["name"]].get("configMap", {}).get("name")
        for name, text in maps.get(of_map, {}).get("data", {}).items():
            path = Path(directory, mount["mountPath"].lstrip("/"), name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def with_certificates(binary, text, name, objects, directory):
    """The configuration with the files that the chart's Job would make, so that the binary checks them too."""
    jobs = [item["spec"]["template"]["spec"]["containers"][0]["args"] for item in objects if item["kind"] == "Job"]
    for words in jobs:
        prefix = words[words.index("--secrets") + 1]
        words = [word for word in words if word not in ("--secrets", prefix)]
        subprocess.run([binary, *words, directory], check=True, capture_output=True, timeout=30)
        text = text.replace('"/run/tls/', f'"{directory}/{name.removeprefix(f"{prefix}-")}/')
    return text, bool(jobs)


def check(binary, text, spec, objects, maps):
    """The binary's error about the file; None if it is valid."""
    container = spec["containers"][0]
    with tempfile.TemporaryDirectory() as directory:
        files(spec, maps, directory)
        named = [volume["secret"]["secretName"] for volume in spec["volumes"] if volume["name"] == "tls"]
        text, made = with_certificates(binary, text, named[0] if named else "", objects, directory)
        path = Path(directory, "shoal.toml")
        for place in ("/run/secrets/", "/etc/shoal/"):
            text = text.replace(f'"{place}', f'"{directory}{place}')
        path.write_text(text)
        variables = {"PATH": os.environ["PATH"], **environment(container), "SHOAL_CONFIG": str(path)}
        done = subprocess.run([binary, "config", "check"], env=variables, capture_output=True, text=True, timeout=30)
    if made and "/tls.crt" in done.stderr:
        return done.stderr.strip()
    if BUILT_IN in done.stderr:
        return None
    return None if done.returncode == 0 else (done.stderr.strip() or f"exit code {done.returncode}")


def rendered():
    """The chart's value files, and typical values of platforms."""
    for name, values in value_files().items():
        yield name, render(values)
    for name, values in SETS.items():
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            yaml.dump(merged(TRIAL, values), file)
            file.flush()
            yield name, render(Path(file.name))


def main():
    binary, report = sys.argv[1], Report()
    for name, objects in rendered():
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
            trouble = check(binary, text, spec, objects, maps)
            report.say(title, [trouble] if trouble else [])
    report.end()


if __name__ == "__main__":
    main()
