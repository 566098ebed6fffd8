"""Starts an unpacked image and prints how long it takes to be ready.

    start.py ROOT [--user UID:GID]

Runs the entry point in the root directory ROOT, as its user: by chroot for root, otherwise in a user namespace. The image
gets only three devices of this machine, not even /proc; container runtimes give more.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

# Longer than a start takes on a busy machine.
PATIENCE = 30
ROUNDS = 5


def main():
    if len(sys.argv) not in (2, 4):
        sys.exit(__doc__)
    root = Path(sys.argv[1])
    user = sys.argv[3] if len(sys.argv) == 4 else "65532:65532"
    # Container runtimes do this too, so the image need not have them.
    (root / "dev").mkdir(exist_ok=True)
    for device in ("null", "random", "urandom"):
        (root / "dev" / device).touch()
    times = sorted(start(root, user) for _ in range(ROUNDS))
    print(f"ready after {times[ROUNDS // 2] * 1000:.0f} ms ({ROUNDS} starts, {times[0] * 1000:.0f} to "
          f"{times[-1] * 1000:.0f} ms)")


def command(root, user):
    entry = ["/usr/local/bin/shoal", "serve", "--demo", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
    # Mounts end with the process. In another user's namespace there is no other user to switch to.
    unshare = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
    become = ["chroot", *([f"--userspec={user}"] if os.geteuid() == 0 else []), str(root)]
    script = 'cd "$0" && for device in null random urandom; do mount --bind /dev/$device dev/$device; done && exec "$@"'
    return [*unshare, "sh", "-ec", script, str(root), *become, *entry]


def start(root, user):
    """Seconds from the process's start until /readyz succeeds. Fails unless the process also answers a call."""
    began = time.monotonic()
    with subprocess.Popen(command(root, user), env={"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        # Ends the process in any case; the code below reads the pipes to their end.
        timer = threading.Timer(PATIENCE, process.kill)
        timer.start()
        try:
            addresses = announced(process)
            wait_until_ready(process, addresses["admin on"] + "/readyz", began)
            took = time.monotonic() - began
            call(addresses["serving MCP on"])
            process.send_signal(signal.SIGTERM)
            if process.wait(PATIENCE) != 0:
                sys.exit(f"it ended with exit status {process.returncode}: {process.stderr.read()}")
            return took
        finally:
            process.kill()
            timer.cancel()


def announced(process):
    found = {}
    while len(found) < 2:
        line = process.stdout.readline()
        if not line:
            sys.exit(f"it did not start: {process.stderr.read()}")
        named = re.match(r"shoal: (serving MCP on|admin on) (\S+)", line)
        if named:
            found[named[1]] = named[2]
    return found


def wait_until_ready(process, url, began):
    while True:
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                json.load(answer)
                return
        except (urllib.error.URLError, ConnectionError) as error:
            if time.monotonic() - began > PATIENCE or process.poll() is not None:
                sys.exit(f"{url} does not say that it is ready: {error}")
            time.sleep(0.002)


def call(url):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "echo", "arguments": {"text": "hello"},
                       "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                                 "io.modelcontextprotocol/clientCapabilities": {}}}}
    request = urllib.request.Request(url, json.dumps(body).encode(), {
        "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "echo"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        result = json.load(answer)["result"]
    if result["content"][0]["text"] != "hello":
        sys.exit(f"echo answers {result}")


if __name__ == "__main__":
    main()
