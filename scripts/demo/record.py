"""Records a call that outlives its node, from real processes, as an animated picture.

    python3 scripts/demo/record.py --shoal PATH --output docs/demo.svg

Starts a Redis, an edge, two session nodes and a worker in their own network, so that they take no port of this machine.
Needs redis-server, and root or user namespaces.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

from picture import Line, Pane, draw

STORE = "redis://127.0.0.1:6379"
READY_SECONDS = 60
STEPS = 8
CALL = f"""shoal call --era legacy long_job '{{"steps": {STEPS}, "interval_ms": 1000}}'"""
STATUS = "shoal status | grep -E 'NODE|session'"
ERASE = "\x1b[K"


class Typed:
    """A command at a terminal, and its output over time."""

    def __init__(self, command: str, pane: Pane, began: float) -> None:
        self.pane = pane
        self.began = began
        self.text = ""
        pane.show(Line(f"$ {command}", "typed"), self.now())
        self.process, self.terminal = os.forkpty()
        if self.process == 0:
            os.execvp("bash", ["bash", "-c", command])

    def read_until(self, seconds: float) -> None:
        """Reads output until this time; the command must still run."""
        while self.now() < seconds:
            if not self.read(0.1):
                raise SystemExit(f"record.py: the call ended too early: {self.pane.rows[-1][-1].line.text}")

    def now(self) -> float:
        return time.monotonic() - self.began

    def read(self, seconds: float) -> bool:
        """Reads output within this time; false when the command has ended."""
        if not select.select([self.terminal], [], [], seconds)[0]:
            return True
        try:
            got = os.read(self.terminal, 4096)
        except OSError:
            got = b""
        if not got:
            os.waitpid(self.process, 0)
            return False
        self.text += got.decode()
        *whole, self.text = re.split(r"\r?\n", self.text)
        for line in whole:
            self.pane.settle(Line(line.rpartition(ERASE)[2]), self.now())
        shown = self.text.rpartition(ERASE)[2]
        if shown.strip():
            self.pane.change(Line(shown), self.now())
        return True


def run(command: str, pane: Pane, began: float) -> str:
    """Runs a command and returns its output."""
    before = len(pane.rows)
    typed = Typed(command, pane, began)
    while typed.read(1):
        pass
    return "\n".join(row[-1].line.text for row in pane.rows[before + 1 :])


def serve(shoal: str, name: str, *flags: str) -> subprocess.Popen[bytes]:
    environment = os.environ | {"SHOAL_NODE__NAME": name}
    log = open(f"{name}.log", "wb")  # noqa: SIM115 - the process writes it until it ends
    return subprocess.Popen([shoal, "serve", *flags], env=environment, stdout=log, stderr=log)


def until_ready(port: int) -> None:
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1)
            return
        time.sleep(0.1)
    raise SystemExit(f"record.py: the process on port {port} is not ready after {READY_SECONDS} s")


def record(shoal: str) -> tuple[list[Pane], float]:
    """Runs the demo, and returns the terminals and its duration."""
    client, operator = Pane("a client"), Pane("an operator")
    session = ["--roles", "session", "--store", STORE]
    with contextlib.ExitStack() as started:

        def start(process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
            started.callback(process.wait)
            started.callback(process.kill)
            return process

        start(subprocess.Popen(["redis-server", "--save", ""], stdout=subprocess.DEVNULL))
        start(serve(shoal, "edge", "--roles", "edge", "--store", STORE, "--cluster-listen", "127.0.0.1:7000"))
        nodes = {
            f"session-{number}": start(
                serve(shoal, f"session-{number}", *session, "--cluster-listen", f"127.0.0.1:700{number}", "--admin", f"127.0.0.1:900{number}")
            )
            for number in (1, 2)
        }
        start(serve(shoal, "worker", "--roles", "worker", "--join", "127.0.0.1:7000", "--admin", "127.0.0.1:9003"))
        for port in (8081, 9001, 9002, 9003):
            until_ready(port)

        began = time.monotonic() - 1
        call = Typed(CALL, client, began)
        call.read_until(3)
        # A node that has just started may answer "try again" for a moment.
        while not owner_of_the_session(status()) and call.now() < READY_SECONDS:
            call.read(0.1)
        shown = run(STATUS, operator, began)
        id_of_the_owner = owner_of_the_session(shown)
        if not id_of_the_owner:
            raise SystemExit(f"record.py: no node has the session:\n{shown}")
        owner = next(name for name in nodes if id_of_the_owner.startswith(name))
        call.read_until(4.5)
        operator.show(Line(f"$ kill -9 {nodes[owner].pid}    # {owner}", "typed"), call.now())
        nodes[owner].send_signal(signal.SIGKILL)
        looked = False
        while call.read(0.1):
            if not looked and call.now() > 8:
                looked = True
                run(STATUS, operator, began)
        if f"done after {STEPS} steps" not in client.rows[-1][-1].line.text:
            raise SystemExit(f"record.py: the call ended otherwise: {client.rows[-1][-1].line.text}")
        return [client, operator], call.now()


def status() -> str:
    """The output of the operator's command, not shown."""
    return subprocess.run(STATUS, shell=True, capture_output=True, text=True, check=False).stdout


def owner_of_the_session(table: str) -> str | None:
    """The node with a session, from the table of `shoal status`."""
    for line in table.splitlines():
        words = line.split()
        if len(words) > 4 and words[2] == "session" and words[4] == "1":
            return words[0].rstrip("*")
    return None


def alone() -> None:
    """Restarts this script in a network namespace."""
    flags = ["--net"] if os.geteuid() == 0 else ["--user", "--map-root-user", "--net"]
    again = ["env", "DEMO_NETWORK=own", sys.executable, "-B", *sys.argv]
    os.execvp("unshare", ["unshare", *flags, "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *again])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shoal", required=True, type=pathlib.Path, help="the binary")
    parser.add_argument("--output", required=True, type=pathlib.Path, help="the picture")
    options = parser.parse_args()
    if os.environ.get("DEMO_NETWORK") != "own":
        alone()
    output = options.output.absolute()
    shoal = options.shoal.absolute()
    os.environ["TERM"] = "xterm"
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        os.symlink(shoal, "shoal")
        os.environ["PATH"] = f"{directory}:{os.environ['PATH']}"
        panes, seconds = record(str(shoal))
        os.chdir("/")
    output.write_text(draw(panes, seconds))


if __name__ == "__main__":
    main()
