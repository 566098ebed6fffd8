"""Runs the services of deploy/compose.yaml as processes, with their own commands, settings, balancer and Redis.

    services.py MODEL.json SHOAL DIRECTORY

MODEL.json is the Compose file as its loader prints it. Runs as root, in namespaces of its own; ends all it started.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import mcp  # beside this file
from networks import Network

PATIENCE = 60
SESSIONS = 12
# The image's user.
USER = 65532
NOBODY = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs", "--bounding-set=-all"]


class Service:
    """One process of a service."""

    def __init__(self, name, model, network, command, environment, directory):
        self.name, self.model = name, model
        self.inside, self.address = network.join(name)
        self.environment = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"} | environment
        self.log = Path(directory, f"{self.address}-{name}.log")
        # The only place that the process may write to; Redis' volume.
        data = Path(directory, f"{self.address}-{name}")
        data.mkdir()
        os.chown(data, USER, USER)
        with self.log.open("w") as log:
            self.process = subprocess.Popen([*self.inside, *NOBODY, *command], env=self.environment, cwd=data,
                                            stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def healthy(self, shoal):
        test = [shoal if word == "/usr/local/bin/shoal" else word for word in self.model["healthcheck"]["test"][1:]]
        asked = subprocess.run([*self.inside, *test], env=self.environment, capture_output=True, check=False)
        return asked.returncode == 0

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return self.process.wait(PATIENCE)


class Deployment:
    """All of Shoal's services, the balancer and Redis."""

    def __init__(self, model, shoal, directory):
        self.directory = Path(directory)
        self.directory.chmod(0o755)
        self.shoal = shutil.copy(shoal, self.directory / "shoal")
        self.services = model["services"]
        self.secrets = {name: secret["file"] for name, secret in model["secrets"].items()}
        self.network = Network(directory)
        self.running = []

    def start(self, name):
        service = self.services[name]
        places = self.places(service)
        environment = {key: replaced(value, places) for key, value in (service.get("environment") or {}).items()}
        for _ in range((service.get("deploy") or {}).get("replicas") or 1):
            if name == "balancer":
                command = ["haproxy", "-db", "-f", places["/usr/local/etc/haproxy/haproxy.cfg"]]
            else:
                command = service["command"]
                command = command if name == "redis" else [self.shoal, *command]
            process = Service(name, service, self.network, command, environment, self.directory)
            self.running.append(process)
        return process

    def places(self, service):
        """Copies of files that a container would see elsewhere, with their paths adjusted. Only the owner may have access to the originals.
        """
        files = [(f"/run/secrets/{secret['source']}", self.secrets[secret["source"]])
                 for secret in service.get("secrets") or []]
        files += [(volume["target"], volume["source"]) for volume in service.get("volumes") or []
                  if volume["type"] == "bind"]
        places = {}
        for target, source in files:
            copy = self.directory / Path(source).name
            # Copy once, because a process may be reading it.
            if not copy.exists():
                copy.write_text(replaced(Path(source).read_text(), places))
                copy.chmod(0o644)
            places[target] = str(copy)
        return places

    def of(self, name):
        return [process for process in self.running if process.name == name]

    def wait_until_healthy(self, name):
        deadline = time.monotonic() + PATIENCE
        for process in self.of(name):
            while not process.healthy(self.shoal):
                if time.monotonic() > deadline or process.process.poll() is not None:
                    raise RuntimeError(f"{name} is not healthy: {process.log.read_text()[-2000:]}")
                time.sleep(0.1)

    def close(self):
        for process in self.running:
            process.process.kill()
            process.process.wait()
        self.network.close()


def replaced(text, places):
    for target, source in places.items():
        text = text.replace(target, source)
    return text


def ok(what):
    print(f"ok   {what}", flush=True)


def check(deployment):
    for names in (["redis"], ["session-1", "session-2", "edge-1", "edge-2", "worker"]):
        for name in names:
            deployment.start(name)
        for name in names:
            deployment.wait_until_healthy(name)
            ok(f"{name} is healthy")
    url = f"http://{deployment.start('balancer').address}:8080/mcp"
    until(lambda: mcp.modern(url, "echo", {"text": "hello"}))
    ok("the balancer passes calls of 2026-07-28")

    session = mcp.Session(url)
    came = [at for at, message in mcp.messages(session.call("long_job", {"steps": 5, "interval_ms": 600},
                                                            {"progressToken": 1}))]
    # If a proxy buffered them, they would arrive at once; they are made over 3 s.
    if len(came) < 5 or came[-1] - came[0] < 1:
        raise RuntimeError(f"the stream came in {len(came)} pieces within {came[-1] - came[0]:.1f} s")
    ok("the balancer passes streams on as they come")

    ending = deployment.of("edge-1")[0]
    ending.process.send_signal(signal.SIGTERM)
    calls = 0
    while ending.process.poll() is None:
        mcp.modern(url, "echo", {"text": "hello"})
        mcp.response(session.call("echo", {"text": "hello"}))
        calls += 1
    if ending.process.returncode != 0 or calls < 10:
        raise RuntimeError(f"edge-1 ended with {ending.process.returncode} after {calls} calls")
    ok(f"edge-1 ends in order, and none of {2 * calls} calls fails meanwhile")

    # Enough that session-1 has some of them.
    sessions = [session, *(mcp.Session(url) for _ in range(SESSIONS))]
    deployment.of("session-1")[0].stop(signal.SIGKILL)
    for one in [*sessions, mcp.Session(url)]:
        mcp.response(one.call("echo", {"text": "hello"}))
    ok("sessions outlive session-1")
    deployment.of("worker")[0].stop()
    mcp.response(session.call("echo", {"text": "hello"}))
    ok("calls go on with one worker")


def until(action):
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return action()
        except OSError as error:
            # The balancer is starting, or has not checked the edges yet.
            if getattr(error, "code", 503) != 503 or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    model = json.loads(Path(sys.argv[1]).read_text())
    deployment = Deployment(model, sys.argv[2], sys.argv[3])
    try:
        check(deployment)
    except (RuntimeError, OSError) as error:
        print(f"FAIL services: {error}", flush=True)
        sys.exit(1)
    finally:
        deployment.close()


if __name__ == "__main__":
    main()
