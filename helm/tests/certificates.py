#!/usr/bin/env python3
"""The certificates that the chart makes do what they are for, between real processes on loopback.

    certificates.py BINARY

A node and a worker start with the certificates of their Secrets. The worker of a pool joins. With the certificate of another pool it does not.
"""
import base64
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from chart import Report, render, value_files

# After so long there is nothing to wait for.
SECONDS = 30


def write_secrets(directory):
    """The files of each Secret in a directory of its name, and the name that makes a process a member."""
    for item in render(value_files()["trial"], sets=["pools.other.backend=demo"]):
        if item["kind"] != "Secret":
            continue
        place = Path(directory, item["metadata"]["name"])
        place.mkdir()
        for name, content in item["data"].items():
            (place / name).write_bytes(base64.b64decode(content))
        names = item["metadata"].get("annotations", {}).get("shoal.dev/names", "").split()
        if item["metadata"]["name"] == "shoal-tls":
            (member,) = names
    return member


class Process:
    """`shoal serve` with the certificate of a Secret."""

    def __init__(self, binary, directory, secret, member, *words):
        files = Path(directory, secret)
        self.log = Path(directory, f"{secret}.log")
        variables = {
            "PATH": os.environ["PATH"],
            "SHOAL_CLUSTER__TLS__CERTIFICATE": str(files / "tls.crt"),
            "SHOAL_CLUSTER__TLS__KEY": str(files / "tls.key"),
            "SHOAL_CLUSTER__TLS__AUTHORITY": str(files / "ca.crt"),
            "SHOAL_CLUSTER__TLS__NAME": member,
        }
        with self.log.open("w") as log:
            command = [binary, "serve", "--admin", "127.0.0.1:0", *words]
            self.process = subprocess.Popen(command, env=variables, stdout=log, stderr=log)

    def said(self, words):
        """The rest of the line after these words, once the process has said them."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            for line in self.log.read_text().splitlines():
                if words in line:
                    return line.partition(words)[2].strip()
            time.sleep(0.1)
        sys.exit(f"FAIL {words!r} is not in:\n{self.log.read_text()}")

    def end(self):
        self.process.kill()
        self.process.wait()


def is_ready(admin):
    try:
        return urllib.request.urlopen(f"{admin}/readyz", timeout=5).status == 200
    except urllib.error.HTTPError:
        return False


def main():
    binary, report = sys.argv[1], Report()
    with tempfile.TemporaryDirectory() as directory:
        member = write_secrets(directory)
        running = []

        def start(secret, *words):
            running.append(Process(binary, directory, secret, member, *words))
            return running[-1]

        try:
            node = start("shoal-tls", "--roles", "edge,session", "--cluster-listen", "127.0.0.1:0", "--listen", "127.0.0.1:0")
            address, admin = node.said("cluster on "), node.said("admin on ")
            worker = ["--roles", "worker", "--demo", "--join", address]
            other = start("shoal-tls-worker-other", *worker)
            other.said("the certificate is for the pools other")
            report.say("a worker with another pool's certificate is refused", ["the node is ready"] if is_ready(admin) else [])
            start("shoal-tls-worker-demo", *worker)
            end = time.monotonic() + SECONDS
            while not is_ready(admin) and time.monotonic() < end:
                time.sleep(0.1)
            report.say("the pool's worker joins", [] if is_ready(admin) else [node.log.read_text()])
        finally:
            for process in running:
                process.end()
    report.end()


if __name__ == "__main__":
    main()
