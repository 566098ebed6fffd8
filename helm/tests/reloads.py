#!/usr/bin/env python3
"""A real edge reloads the settings that the chart says it reloads, from files that change as the kubelet changes them.

    reloads.py BINARY

An edge runs with the files that its pod would mount, and a Redis with a password. An upgrade replaces the ConfigMap's directory. The
process then takes a pool, a quota, a rule and a token, names the settings that need a restart, and keeps its settings if the file is
invalid.
"""
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import yaml

from chart import Report, render
from sets import TRIAL, merged

# Timeout of each wait.
SECONDS = 40
PASSWORD = "the-password-of-redis"
# The hashes of the tokens "one" and "two".
ONE = {"name": "one", "sha256": "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"}
TWO = {"name": "two", "sha256": "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"}
RULE = {"name": "all", "effect": "allow", "tools": ["*"]}
BASE = merged(TRIAL, {
    "redis": {"bundled": {"enabled": False}, "url": "redis://redis", "user": "shoal", "passwordSecret": {"name": "redis"}},
    "tls": {"enabled": False},
    "config": {
        "auth": {"allow_anonymous": False, "mode": "tokens", "tokens": [ONE]},
        "policy": {"rules": [RULE], "reread": "1s"},
        "logging": {"format": "json"},
    },
})
NEXT = merged(BASE, {
    "config": {
        "auth": {"tokens": [ONE, TWO]},
        "policy": {"rules": [RULE, {"name": "no", "effect": "deny", "tools": ["echo"]}]},
        "quotas": [{"name": "calls", "per": "principal", "rate": "10/s"}],
        "limits": {"streams": 77},
    },
    "pools": {"late": {"backend": "demo", "settings": {"prefix": "late_"}}},
})


def files(values):
    """The files of the edges' ConfigMap."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.dump(values, file)
        file.flush()
        objects = render(Path(file.name))
    (found,) = [item["data"] for item in objects if item["kind"] == "ConfigMap" and item["metadata"]["name"] == "shoal-edge"]
    return found


class Volume:
    """A mounted ConfigMap: its files are links into a directory that is replaced atomically."""

    def __init__(self, place):
        self.place, self.count = place, 0
        place.mkdir(parents=True)

    def write(self, texts):
        self.count += 1
        now = self.place / f"..{self.count}"
        now.mkdir()
        for name, text in texts.items():
            for there in ("/etc/shoal", "/run/secrets"):
                text = text.replace(f'"{there}/', f'"{self.place.parents[1]}{there}/')
            (now / name).write_text(text)
            link = self.place / name
            if not link.is_symlink():
                link.symlink_to(f"..data/{name}")
        (self.place / "..next").symlink_to(now.name)
        (self.place / "..next").rename(self.place / "..data")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def start_redis(directory):
    """A Redis with a user and a password; returns it and its URL."""
    port = free_port()
    users = Path(directory, "users.acl")
    users.write_text(f"user default off\nuser shoal on >{PASSWORD} ~* &* +@all\n")
    words = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--maxmemory-policy", "noeviction", "--aclfile", str(users), "--dir", directory]
    return subprocess.Popen(["redis-server", *words], stdout=subprocess.DEVNULL), f"redis://127.0.0.1:{port}"


class Edge:
    """`shoal serve` with the files of an edge's pod."""

    def __init__(self, binary, directory, url):
        self.log = Path(directory, "edge.log")
        variables = {"PATH": os.environ["PATH"], "SHOAL_CONFIG": f"{directory}/etc/shoal/shoal.toml", "SHOAL_NODE__STORE": url}
        words = ["--admin", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--cluster-listen", "127.0.0.1:0"]
        with self.log.open("w") as log:
            self.process = subprocess.Popen([binary, "serve", *words], env=variables, stdout=log, stderr=log)

    def waits(self, what):
        """Waits until `what` is true; otherwise fails with the process's output."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            if what():
                return []
            time.sleep(0.2)
        return [f"it does not: {self.log.read_text()[-3000:]}"]

    def address(self, words):
        """The process's output after these words."""
        if self.waits(lambda: words in self.log.read_text()):
            sys.exit(f"FAIL {words!r} is not in:\n{self.log.read_text()}")
        return self.log.read_text().partition(words)[2].split()[0].strip('",;')

    def configuration(self, admin):
        with urllib.request.urlopen(f"{admin}/status", timeout=5) as answer:
            return json.load(answer)["configuration"]

    def said(self, *words):
        """Whether one line of the log has all of these words."""
        return any(all(word in line for word in words) for line in self.log.read_text().splitlines())


def is_known(endpoint, token):
    request = urllib.request.Request(endpoint, b"{}", {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
    try:
        return urllib.request.urlopen(request, timeout=5).status != 401
    except urllib.error.HTTPError as error:
        return error.code != 401


def check(report, edge, volume):
    endpoint, admin = edge.address("serving MCP on "), edge.address("shoal: admin on ")
    report.say("the edge starts with the chart's files", edge.waits(lambda: is_known(endpoint, "one")))
    report.say("a token is unknown before", ["it is known"] if is_known(endpoint, "two") else [])
    volume.write(files(NEXT))
    report.say("a token is taken", edge.waits(lambda: is_known(endpoint, "two")))
    report.say("a rule is taken", edge.waits(lambda: edge.said("other policy rules are in force")))
    report.say("a pool and a quota are taken", edge.waits(lambda: edge.said("the configuration was read again", "late", "quotas")))
    waiting = edge.configuration(admin)["at_next_start"]
    report.say("what needs a start is named", [] if waiting == ["limits.streams"] else [str(waiting)])
    volume.write({**files(NEXT), "shoal.toml": "[limits]\nstreams = 'many'\n"})
    report.say("a file that cannot be used is named", edge.waits(lambda: "limits.streams" in (edge.configuration(admin)["refused"] or "")))
    report.say("the edge works on", [] if is_known(endpoint, "two") and edge.process.poll() is None else ["it does not"])
    volume.write(files(BASE))
    report.say("a rollback is taken", edge.waits(lambda: edge.configuration(admin)["refused"] is None and not is_known(endpoint, "two")))


def main():
    binary, report = sys.argv[1], Report()
    with tempfile.TemporaryDirectory() as directory:
        secret = Path(directory, "run/secrets/shoal/redis/password")
        secret.parent.mkdir(parents=True)
        secret.write_text(PASSWORD)
        volume = Volume(Path(directory, "etc/shoal"))
        volume.write(files(BASE))
        redis, url = start_redis(directory)
        edge = Edge(binary, directory, url)
        try:
            check(report, edge, volume)
        finally:
            for process in (edge.process, redis):
                process.kill()
                process.wait()
    report.end()


if __name__ == "__main__":
    main()
