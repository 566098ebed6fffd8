"""Whether callers see the lists that are theirs: of a server that lists to each what it may use, and of sessions' own processes.

    python run.py --shoal target/debug/shoal

Needs redis-server. Prints a line for each check, as every program of `interop/`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import queue
import socket
import sys
import tempfile
import threading
import time
import traceback
import urllib.request
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "composed"))

from client import Client, Failed, Message  # noqa: E402
from cluster import Cluster, free_port, said, status, until  # noqa: E402

SERVER = HERE / "server.py"
CHANGED = "notifications/tools/list_changed"
UPDATED = "notifications/resources/updated"
PLAIN = ["hello", "enable", "disable"]


class Node:
    """One process of Shoal with all roles."""

    def __init__(self, shoal: str, directory: Path) -> None:
        self.cluster, self.directory = Cluster(shoal, directory), directory

    def start(self, name: str, config: str) -> str:
        path = self.cluster.write(name, config)
        words = [self.cluster.shoal, "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--config", str(path)]
        self.cluster.spawn(name, words)
        out = self.directory / f"{name}.log"
        self.admin = until(name, lambda: said(out, "shoal: admin on "))
        until(f"{name} is ready", lambda: all(pool["ready"] for pool in status(self.admin)["pools"]))
        return until(name, lambda: said(out, "shoal: serving MCP on "))

    def server(self, name: str, *flags: str) -> str:
        self.cluster.spawn(name, [sys.executable, "-u", str(SERVER), "--http", *flags])
        out = self.directory / f"{name}.log"
        return until(name, lambda: said(out, "http") and "http" + said(out, "http"))


def tokens() -> str:
    """The callers that Shoal knows. The server does not know eve's token."""
    digest = lambda name: hashlib.sha256(f"token-{name}".encode()).hexdigest()  # noqa: E731
    known = ", ".join(f'{{ name = "{name}", sha256 = "{digest(name)}" }}' for name in ("alice", "bob", "eve"))
    return f'[auth]\nmode = "tokens"\ntokens = [{known}]\n'


def remote(url: str, more: str = "") -> str:
    table = '[pools.remote.backend.http]\n'
    return f'{table}url = "{url}"\nlists = "principal"\nhealth_interval = "200ms"\n{more}'


FORWARDS = 'forward = ["authorization"]\n'


def stdio(more: str = "") -> str:
    return f'[pools.own.backend.stdio]\ncommand = "{sys.executable}"\nargs = ["-u", "{SERVER}"]\n{more}'


STARTING = 50301
"""A node that has just started may not know every pool yet, and says that it is safe to call again."""


def fails(wanted: int, does: Callable[[], object], part: str = "") -> str:
    try:
        result = does()
    except Failed as failed:
        if failed.code == STARTING:
            time.sleep(1)
            return fails(wanted, does, part)
        assert failed.code == wanted and part in failed.message, f"{failed}, not {wanted} with {part!r}"
        return failed.message
    raise AssertionError(f"{result}, not {wanted}")


def seen(url: str) -> dict[str, int]:
    with urllib.request.urlopen(url.replace("/mcp", "/seen"), timeout=10) as answer:
        return json.loads(answer.read())


def order(url: str, what: str) -> None:
    urllib.request.urlopen(url.replace("/mcp", f"/{what}"), timeout=10).close()


def each_sees_its_own(alice: Client, bob: Client) -> None:
    for client, user, other in ((alice, "alice", "bob"), (bob, "bob", "alice")):
        assert client.names()[:2] == ["whoami", f"{user}_only"], client.names()
        assert client.call(f"{user}_only") == f"{user}_only for {user}"
        fails(-32602, lambda client=client, other=other: client.call(f"{other}_only"), "unknown tool")
        assert client.names("resources/list") == [f"note://{user}"]
        text = client.ask("resources/read", {"uri": f"note://{user}"})["contents"][0]["text"]
        assert text == f"note://{user} of {user}", text
        assert client.names("prompts/list") == [user]
        assert "messages" in client.ask("prompts/get", {"name": user})


def principals(node: Node, *flags: str) -> str:
    """Alice and bob see different lists, in both eras. The server refuses everything without their tokens."""
    server = node.server("server", *flags)
    url = node.start("shoal", tokens() + remote(server, FORWARDS))
    for modern in (True, False):
        make = (lambda token: Client(url, token, True)) if modern else (lambda token: Client.legacy(url, token))
        alice, bob, eve = make("token-alice"), make("token-bob"), make("token-eve")
        each_sees_its_own(alice, bob)
        if modern:
            assert alice.scope == "private", alice.scope
        fails(-32603, eve.names, "the caller's credentials")
        fails(-32603, lambda: eve.call("whoami"), "the caller's credentials")
    # The lists of a caller are cached.
    before = seen(server)["tools/list alice"]
    for _ in range(5):
        alice.names()
        alice.call("whoami")
    after = seen(server)
    assert after["tools/list alice"] == before, f"{before} and {after}"
    pool = status(node.admin)["pools"][0]
    assert pool["ready"] and pool["lists"] == "principal", pool
    return f"{sum(after.values())} requests"


def without_a_token(node: Node) -> str:
    """A caller without a token is refused. It gets Shoal's own credentials only if the pool allows that."""
    server = node.server("server")
    own = f'{FORWARDS}headers = {{ Authorization = "Bearer token-service" }}\n'
    refusing = Client(node.start("refusing", remote(server, own)), None, True)
    fails(-32603, refusing.names, "send Authorization")
    fails(-32603, lambda: refusing.call("whoami"), "send Authorization")
    assert "tools/list service" not in seen(server), seen(server)
    alice = Client(refusing.url, "token-alice", True)
    assert "alice_only" in alice.names()
    serving = Client(node.start("serving", remote(server, own + 'callers_without_token = "service"\n')), None, True)
    assert "service_only" in serving.names()
    assert serving.call("service_only") == "service_only for service"
    return "refused, and served"


def exchanged(node: Node) -> str:
    """The same with exchanged tokens."""
    server = node.server("server")
    endpoint = server.replace("/mcp", "/token")
    table = f'[pools.remote.backend.http.token_exchange]\nendpoint = "{endpoint}"\n'
    url = node.start("shoal", tokens() + remote(server, table))
    each_sees_its_own(Client(url, "token-alice", True), Client.legacy(url, "token-bob"))
    eve = Client(url, "token-eve", True)
    fails(-32603, eve.names)
    fails(-32603, lambda: eve.call("whoami"))
    return "by tokens of the endpoint"


def beside_others(node: Node) -> str:
    """A server that refuses a caller hides no offers of others, and occupies no names."""
    server = node.server("server")
    other = f'[pools.a_plain]\nprefix = "plain_"\n[pools.a_plain.backend.stdio]\ncommand = "{sys.executable}"\nargs = ["-u", "{SERVER}"]\n'
    taken = f'[pools.z_plain.backend.stdio]\ncommand = "{sys.executable}"\nargs = ["-u", "{SERVER}"]\n'
    url = node.start("shoal", tokens() + other + taken + remote(server, FORWARDS))
    alice, eve = Client(url, "token-alice", True), Client(url, "token-eve", True)
    shared = [f"plain_{name}" for name in PLAIN] + PLAIN
    assert sorted(eve.names()) == sorted(shared), eve.names()
    assert sorted(alice.names()) == sorted([*shared, "whoami", "alice_only"]), alice.names()
    assert eve.call("plain_hello") == "hello for None"
    # Another server has this tool, which all callers see.
    assert alice.call("enable") == "enable for None"
    assert alice.call("alice_only") == "alice_only for alice"
    fails(-32603, lambda: eve.call("alice_only"), "the caller's credentials")
    return f"{len(shared)} tools for all"


def waiters(node: Node) -> str:
    """All waiting callers share one request, even if some give up."""
    server = node.server("server")
    url = node.start("shoal", tokens() + remote(server, FORWARDS))
    order(server, "hold")
    answers: queue.Queue[list[str]] = queue.Queue()
    ask = lambda: answers.put(Client(url, "token-alice", True).names())  # noqa: E731
    gives_up = Client(url, "token-alice", True)
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}}
    host, _, port = url.removeprefix("http://").partition("/")[0].partition(":")
    headers = "".join(f"{name}: {value}\r\n" for name, value in gives_up._headers(body).items())
    text = json.dumps(body)
    with socket.create_connection((host, int(port))) as connection:
        head = f"POST /mcp HTTP/1.1\r\nHost: {host}:{port}\r\n{headers}Content-Length: {len(text)}\r\n\r\n"
        connection.sendall((head + text).encode())
        until("the server is asked", lambda: seen(server).get("tools/list alice"))
    waiting = [threading.Thread(target=ask, daemon=True) for _ in range(8)]
    for thread in waiting:
        thread.start()
    order(server, "release")
    for _ in waiting:
        assert "alice_only" in answers.get(timeout=20)
    asked = seen(server)["tools/list alice"]
    assert asked == 1, f"asked {asked} times"
    return "1 question for 9"


def changed_session(first: Client, second: Client, elsewhere: Client) -> None:
    """A session's process adds a tool: only that session sees and calls it."""
    for client in (first, second):
        assert client.names() == PLAIN, client.names()
        client.listen()
        assert client.call("hello") == "hello for None"
    assert first.call("enable") == "enable for None"
    first.hears(CHANGED)
    until("the session sees its tool", lambda: first.names() == [*PLAIN, "extra"])
    assert elsewhere.names() == [*PLAIN, "extra"]
    for client in (first, elsewhere):
        assert client.call("extra") == "extra for None"
    assert "note://extra" in first.names("resources/list")
    assert first.ask("resources/read", {"uri": "note://extra"})["contents"]
    assert "extra" in first.names("prompts/list")
    assert "messages" in first.ask("prompts/get", {"name": "extra"})
    assert second.names() == PLAIN
    fails(-32602, lambda: second.call("extra"), "unknown tool")
    assert second.told.empty(), second.told.get()
    first.call("disable")
    first.hears(CHANGED)
    until("the tool is gone", lambda: first.names() == PLAIN)
    fails(-32602, lambda: first.call("extra"), "unknown tool")


def session(node: Node) -> str:
    """In one process."""
    url = node.start("shoal", stdio())
    first = Client.legacy(url)
    changed_session(first, Client.legacy(url), first.at(url))
    return "added, called, removed"


def sessionless(node: Node) -> str:
    """Calls without a session share a process of their principal, and the tools that it adds."""
    url = node.start("shoal", tokens() + stdio())
    alice, bob = Client(url, "token-alice", True), Client(url, "token-bob", True)
    session = Client.legacy(url, "token-alice")
    for client in (alice, bob, session):
        client.listen()
        assert client.names() == PLAIN
    alice.call("enable")
    alice.hears(CHANGED)
    until("alice sees the tool", lambda: "extra" in alice.names())
    assert alice.call("extra") == "extra for None"
    for other in (bob, session):
        assert other.names() == PLAIN, other.names()
        fails(-32602, lambda other=other: other.call("extra"), "unknown tool")
        assert CHANGED not in list(other.told.queue)
    return "for one principal"


def upstream_session(node: Node) -> str:
    """A session at a server behind a URL adds a tool there."""
    server = node.server("server", "--handshake")
    url = node.start("shoal", tokens() + remote(server, FORWARDS))
    first, second = Client.legacy(url, "token-alice"), Client.legacy(url, "token-alice")
    for client in (first, second):
        client.listen()
        assert "extra" not in client.names()
        client.call("whoami")
    first.call("enable")
    first.hears(CHANGED)
    until("the session sees its tool", lambda: "extra" in first.names())
    assert first.call("extra") == "extra for alice"
    assert "extra" not in second.names()
    fails(-32602, lambda: second.call("extra"), "unknown tool")
    return "for one session"


def subscribe(client: Client, uri: str) -> Callable[[], Message]:
    return lambda: client.ask("resources/subscribe", {"uri": uri})


def watched_for_nobody(node: Node, server: str, url: str, refused: tuple[int, str]) -> None:
    """Bob and alice subscribe to a resource that only alice may watch. The server gets no URI with another's token, and
    bob gets no updates.
    """
    alice, bob = Client.legacy(url, "token-alice"), Client.legacy(url, "token-bob")
    for client in (alice, bob):
        client.listen()
        client.call("whoami")
    for client in (bob, alice):
        fails(refused[0], subscribe(client, "note://alice"), refused[1])
    for client in (bob, alice):
        client.call("whoami")
    order(server, "touch/note://alice")
    for client in (alice, bob):
        client.call("enable")
        before = client.hears(CHANGED)
        assert UPDATED not in before, before
    named = [name for name in seen(server) if name.startswith("resources/subscribe")]
    assert not {"resources/subscribe alice", "resources/subscribe bob"} & set(named), named


def subscriptions(node: Node, *flags: str) -> str:
    """A server with lists for each caller has no subscriptions."""
    server = node.server("server", *flags)
    url = node.start("shoal", tokens() + remote(server, FORWARDS))
    if "--modern" not in flags:
        watched_for_nobody(node, server, url, (-32601, "read the resource again"))
    listener = Client(url, "token-bob", True)
    listener.names()
    listener.listen("note://alice", "note://bob")
    assert "resourceSubscriptions" not in listener.honoured, listener.honoured
    assert not [name for name in seen(server) if name.startswith(("resources/subscribe", "subscriptions/listen bob"))]
    return "refused"


def shared_subscriptions(node: Node) -> str:
    """If all callers see the same, Shoal's own token decides, and the server refuses alice's resource."""
    server = node.server("server", "--handshake")
    own = 'headers = { Authorization = "Bearer token-service" }\n'
    pool = f'[pools.remote.backend.http]\nurl = "{server}"\n{FORWARDS}{own}'
    url = node.start("shoal", tokens() + pool)
    watched_for_nobody(node, server, url, (-32602, "note://alice for service"))
    client = Client.legacy(url, "token-bob")
    client.listen()
    subscribe(client, "note://service")()
    order(server, "touch/note://service")
    client.hears(UPDATED)
    return "refused, and told"


def through_a_cluster(node: Node) -> str:
    """Two edges, a session node and a worker."""
    cluster = node.cluster
    server = node.server("server")
    redis, join = free_port(), f"127.0.0.1:{free_port()}"
    cluster.spawn("redis", ["redis-server", "--port", str(redis), "--bind", "127.0.0.1", "--save", ""])
    pools = f"{stdio()}[pools.remote]\nprefix = \"r_\"\n{remote(server, FORWARDS)}"
    keys = f"[state_keys]\nkeys = [{{ value = '{'ab' * 32}' }}]\n"
    config = cluster.write("nodes", tokens() + pools + keys)
    urls, admins = [], []

    def serve(name: str, *words: str) -> Path:
        command = [cluster.shoal, "serve", *words, "--admin", "127.0.0.1:0", "--config", str(config)]
        cluster.spawn(name, command)
        return node.directory / f"{name}.log"

    store = ("--store", f"redis://127.0.0.1:{redis}")
    outs = [serve("sessions", "--roles", "session", *store, "--cluster-listen", join)]
    for name in ("edge-1", "edge-2"):
        listen = ("--listen", "127.0.0.1:0", "--cluster-listen", f"127.0.0.1:{free_port()}")
        out = serve(name, "--roles", "edge", *store, *listen)
        urls.append(until(name, lambda out=out: said(out, "shoal: serving MCP on ")))
        outs.append(out)
    admins = [until("a node", lambda out=out: said(out, "shoal: admin on ")) for out in outs]
    serve("worker", "--roles", "worker", "--join", join)

    def ready() -> bool:
        pools = [status(admin)["pools"] for admin in admins]
        return all(len(own) == 2 and all(pool["ready"] for pool in own) for own in pools)

    until("all nodes know the pools", ready)
    for modern in (False, True):
        make = (lambda url, token: Client(url, token, True)) if modern else Client.legacy
        alice, bob = make(urls[0], "token-alice"), make(urls[1], "token-bob")
        for client, user, other in ((alice, "alice", "bob"), (bob, "bob", "alice")):
            names = client.names()
            assert f"r_{user}_only" in names and f"r_{other}_only" not in names and "hello" in names, names
            assert client.call(f"r_{user}_only") == f"{user}_only for {user}"
            fails(-32602, lambda client=client, other=other: client.call(f"r_{other}_only"), "unknown tool")
        eve = make(urls[0], "token-eve")
        assert eve.names() == PLAIN, eve.names()
        fails(-32603, lambda eve=eve: eve.call("r_whoami"), "the caller's credentials")
    eve, other = Client.legacy(urls[0], "token-eve"), Client.legacy(urls[1], "token-eve")
    changed_session(eve, other, eve.at(urls[1]))
    return "two edges, one node for sessions"


CHECKS: dict[str, Callable[[Node], str]] = {
    "a server that wants callers' tokens": principals,
    "one that lets anybody open a session": lambda node: principals(node, "--handshake"),
    "one of 2026-07-28": lambda node: principals(node, "--modern"),
    "one of 2026-07-28 that says to anybody who it is": lambda node: principals(node, "--modern", "--handshake"),
    "callers without a token": without_a_token,
    "exchanged tokens": exchanged,
    "beside other servers": beside_others,
    "callers who wait": waiters,
    "a session's process": session,
    "calls without a session": sessionless,
    "a session at a server behind a URL": upstream_session,
    "subscriptions": subscriptions,
    "subscriptions at a server that lets anybody open a session": lambda node: subscriptions(node, "--handshake"),
    "subscriptions at one of 2026-07-28": lambda node: subscriptions(node, "--modern"),
    "subscriptions where all see the same": shared_subscriptions,
    "a cluster": through_a_cluster,
}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--shoal", required=True)
    parser.add_argument("--only", help="checks whose names hold this")
    parser.add_argument("--keep-logs", type=Path)
    args = parser.parse_args()
    failed = 0
    for name, check in CHECKS.items():
        if args.only and args.only not in name:
            continue
        with tempfile.TemporaryDirectory() as directory:
            node = Node(str(Path(args.shoal).resolve()), Path(directory))
            try:
                print(f"ok {name}: {check(node)}", flush=True)
            except Exception as why:  # noqa: BLE001
                failed += 1
                traceback.print_exc()
                print(f"FAIL {name}: {why!r}", flush=True)
                if args.keep_logs:
                    node.cluster.keep_logs(args.keep_logs / name.replace(" ", "-"))
            finally:
                node.cluster.stop()
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
