#!/usr/bin/env python3
"""Servers that are objects of a cluster appear, change and disappear without a restart of a process.

    servers.py BINARY

A real controller reads objects from this script's API. The script copies the controller's output to where an edge and a worker read it, as
the kubelet does.
"""
import base64
import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from chart import Report
from objects_api import ObjectsApi
from reloads import Edge, Volume

SERVERS = "apis/toolhive.stacklok.dev/v1alpha1/namespaces/team-a/mcpservers"
CONFIG_MAPS, SECRETS = "api/v1/namespaces/shoal/configmaps", "api/v1/namespaces/shoal/secrets"
LEASES = "apis/coordination.k8s.io/v1/namespaces/shoal/leases"
NODE = """
[node]
roles = ["edge", "session"]
[discovery]
file = "{directory}/nodes/pools.toml"
[reload]
watch_every = "200ms"
"""
WORKER = NODE.replace('"edge", "session"', '"worker"').replace("/nodes/", "/workers/")
CONTROLLER = """
[outbound]
allow = ["127.0.0.0/8"]
[discovery.kubernetes]
namespaces = ["team-a"]
directory = "{directory}/workers"
retry = "1s"
[pools.team-a_taken]
backend = "demo"
"""


class Process(Edge):
    """`shoal` with a configuration of this script."""

    def __init__(self, binary, directory, name, config, *words):
        self.binary, self.log = binary, Path(directory, f"{name}.log")
        file = Path(directory, f"{name}.toml")
        file.write_text(config.format(directory=directory))
        variables = {"PATH": os.environ["PATH"], "HOME": directory, "SHOAL_CONFIG": str(file), "KUBECONFIG": f"{directory}/kubeconfig"}
        with self.log.open("w") as log:
            self.process = subprocess.Popen([binary, *words, "--admin", "127.0.0.1:0"], env=variables, stdout=log, stderr=log)

    def answers(self, path):
        """The status and body of the admin port's answer."""
        try:
            with urllib.request.urlopen(self.address("shoal: admin on ") + path, timeout=5) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def run(self, *words):
        done = subprocess.run([self.binary, *words, "--url", self.address("serving MCP on ")], capture_output=True, text=True, timeout=30)
        return done.stdout


class Kubelet:
    """Copies published data to its mounts."""

    def __init__(self, api, directory):
        self.api, self.seen = api, {}
        self.volumes = {CONFIG_MAPS: Volume(Path(directory, "nodes")), SECRETS: Volume(Path(directory, "workers"))}

    def sync(self):
        for collection, volume in self.volumes.items():
            data = self.api.get(collection, "shoal-discovered").get("data")
            if data and data != self.seen.get(collection):
                self.seen[collection] = data
                plain = collection == CONFIG_MAPS
                volume.write({name: text if plain else base64.b64decode(text).decode() for name, text in data.items()})


def published(api):
    """The published pools."""
    return api.get(CONFIG_MAPS, "shoal-discovered").get("data", {}).get("pools.toml", "")


def check(report, api, kubelet, start_worker, server, node, worker, controller):
    def offers(tool):
        def look():
            kubelet.sync()
            return (tool in node.run("tools").split()) if isinstance(tool, str) else not any(word.endswith("echo") for word in node.run("tools").split())
        return look

    def is_refused(name, reason):
        return lambda: any(it["object"].endswith(f"/{name}") and it["reason"] == reason for it in controller.answers("/status")[1]["refused"])

    url = server.address("serving MCP on ")
    for one in (node, worker, controller):
        report.say(f"{one.log.stem}: ready without a server", one.waits(lambda one=one: one.answers("/readyz")[0] == 200))
    api.put(SERVERS, "away", status={"url": "http://127.0.0.1:9/mcp"})
    report.say("a server that is away is a pool", controller.waits(lambda: "team-a_away" in published(api)))
    kubelet.sync()
    late = start_worker("late")
    report.say("a process that starts is ready without it", late.waits(lambda: late.answers("/readyz")[0] == 200))
    notes = late.answers("/readyz")[1]["notes"]
    report.say("and says so", [] if any("team-a_away" in note for note in notes) else [str(notes)])
    api.put(SERVERS, "weather", status={"url": url})
    report.say("a server is found", node.waits(offers("weather_echo")))
    called = node.run("call", "weather_echo", json.dumps({"text": "rain"}))
    report.say("its tool is called", [] if called.strip() == "rain" else [called])
    api.put(SERVERS, "elsewhere", status={"url": "http://10.1.1.1/mcp"})
    api.put(SERVERS, "taken", status={"url": url})
    report.say("the controller makes its Lease", [] if api.get(LEASES, "shoal-controller")["spec"]["holderIdentity"] else ["nobody holds it"])
    report.say("a URL that may not be called is refused", controller.waits(is_refused("elsewhere", "TargetNotAllowed")))
    report.say("a name of the configuration is not given away", controller.waits(is_refused("taken", "NameTaken")))
    api.put(SERVERS, "weather", status={"url": url}, metadata={"annotations": {"shoal.dev/prefix": "sky_"}})
    report.say("a changed prefix is taken", node.waits(offers("sky_echo")))
    kubelet.volumes[CONFIG_MAPS].write({"pools.toml": "[pools"})
    report.say("a file that cannot be read is named", node.waits(lambda: "pools.toml" in (node.answers("/status")[1]["configuration"]["refused"] or "")))
    report.say("and changes nothing", [] if "sky_echo" in node.run("tools").split() else ["the tool is gone"])
    kubelet.seen.clear()
    api.delete(SERVERS, "weather")
    report.say("a server that goes takes its tools along", node.waits(offers(None)))
    controller.process.send_signal(signal.SIGHUP)
    report.say("SIGHUP has the controller read its configuration again", controller.waits(lambda: "SIGHUP" in controller.log.read_text()))
    for one in (node, worker, late, controller):
        report.say(f"{one.log.stem}: the same process", [] if one.process.poll() is None else [one.log.read_text()[-3000:]])


def main():
    binary, report = sys.argv[1], Report()
    with tempfile.TemporaryDirectory() as directory:
        api = ObjectsApi([SERVERS, CONFIG_MAPS, SECRETS, LEASES, "api/v1/namespaces/team-a/services"])
        for collection in (CONFIG_MAPS, SECRETS):
            api.put(collection, "shoal-discovered")
        Path(directory, "kubeconfig").write_text(api.kubeconfig("shoal"))
        kubelet = Kubelet(api, directory)
        processes = []

        def start(name, config, *words):
            processes.append(Process(binary, directory, name, config, *words))
            return processes[-1]

        try:
            server = start("server", "", "serve", "--demo", "--listen", "127.0.0.1:0")
            node = start("node", NODE, "serve", "--listen", "127.0.0.1:0", "--cluster-listen", "127.0.0.1:0")

            def start_worker(name):
                return start(name, WORKER, "serve", "--join", node.address("shoal: cluster on "))

            worker = start_worker("worker")
            controller = start("controller", CONTROLLER, "controller")
            check(report, api, kubelet, start_worker, server, node, worker, controller)
        finally:
            for one in processes:
                one.process.kill()
                one.process.wait()
            api.end()
    report.end()


if __name__ == "__main__":
    main()
