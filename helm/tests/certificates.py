#!/usr/bin/env python3
"""The certificates of the chart's Job work, between real processes on loopback.

    certificates.py BINARY

The Job's command fills the Secrets with the rights of its Role. A node and a worker start with the files that their pods would mount. The
pool's worker joins. With another pool's certificate, it does not.
"""
import copy
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from chart import Report, render, value_files
from secrets_api import SecretsApi

# Timeout of each wait.
SECONDS = 30
MEMBER = "shoal.test"


def run_job(binary, api, objects):
    """Runs the command of the chart's Job, as in its pod."""
    (job,) = [item for item in objects if item["kind"] == "Job"]
    words = job["spec"]["template"]["spec"]["containers"][0]["args"]
    command = [binary, *words, "--service-account", str(api.account)]
    return subprocess.run(command, env=api.environment(), capture_output=True, text=True, timeout=SECONDS)


def write_volumes(api, objects, directory):
    """Writes the files that each Deployment mounts as `tls`, to a directory of its name."""
    for item in objects:
        if item["kind"] == "Deployment":
            volumes = item["spec"]["template"]["spec"]["volumes"]
            for secret in (one["secret"] for one in volumes if one["name"] == "tls"):
                place = Path(directory, item["metadata"]["name"])
                place.mkdir()
                for file in secret["items"]:
                    (place / file["path"]).write_bytes(api.files(secret["secretName"])[file["key"]])


def filled(report, binary, directory, objects):
    """Lets the Job fill the chart's Secrets, and writes the pods' files."""
    api = SecretsApi(binary, directory, objects)
    try:
        first = run_job(binary, api, objects)
        report.say("the Job fills the Secrets", [] if first.returncode == 0 else [first.stderr])
        made = copy.deepcopy(api.secrets)
        second = run_job(binary, api, objects)
        report.say("a second run changes nothing", [] if second.returncode == 0 and api.secrets == made else [second.stderr or "it does"])
        write_volumes(api, objects, directory)
        api.rules = []
        refused = run_job(binary, api, objects)
        expected = refused.returncode != 0 and "get and patch" in refused.stderr
        report.say("without the Role the Job says what it lacks", [] if expected else [refused.stderr or "it works"])
    finally:
        api.end()


class Process:
    """`shoal serve` with a Secret's certificate."""

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
        """Waits for these words, and returns the rest of their line."""
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
        objects = render(value_files()["trial"], sets=["pools.other.backend=demo", f"tls.name={MEMBER}"])
        filled(report, binary, directory, objects)
        running = []

        def start(secret, *words):
            running.append(Process(binary, directory, secret, MEMBER, *words))
            return running[-1]

        try:
            node = start("shoal-edge", "--roles", "edge,session", "--cluster-listen", "127.0.0.1:0", "--listen", "127.0.0.1:0")
            address, admin = node.said("cluster on "), node.said("admin on ")
            worker = ["--roles", "worker", "--demo", "--join", address]
            other = start("shoal-worker-other", *worker)
            other.said("the certificate is for the pools other")
            report.say("a worker with another pool's certificate is refused", ["the node is ready"] if is_ready(admin) else [])
            start("shoal-worker-demo", *worker)
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
