#!/usr/bin/env python3
"""The chart and the binary accept and refuse the same texts of settings.

    same.py BINARY
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from chart import KUBERNETES, Report, helm
from sets import TRIAL

POOL = "[pools.web.backend.http]\nurl = {}\n"
OPENAPI = "[pools.web.backend.openapi]\ndocument = \"https://example.com/d\"\n"
ISSUER = "[auth]\nmode = \"oauth\"\nresource = \"https://a.example/mcp\"\n[[auth.issuers]]\n"

# By setting: its place in the chart's values, the TOML, valid texts and invalid ones.
TIMES = (
    ["500ms", "1.5s", "1h 30m", "2 days", "5msec", "3M", "1year", "7us", "1w", "10 mins"],
    ["30x", "soon", "5", "1h30", "1 fortnight", "10 H", "-1s", ".5s", "1.s", "", "0", "0s", "0m 0s"],
)
# If a URL is optional, empty means absent.
NEEDED = (["https://a.example/x"], ["a.example", "a.example:80/mcp", "ftp://a.example", "//a.example", "https://"])
SETTINGS = {
    "calls.timeout": (["config", "calls", "timeout"], "[calls]\ntimeout = {}\n", *TIMES),
    "session.idle": (["config", "session", "idle"], "[session]\nidle = {}\n", *TIMES),
    "http.url": (["pools", "web", "backend", "http", "url"], POOL, *NEEDED),
    "openapi.base_url": (["pools", "web", "backend", "openapi", "base_url"], OPENAPI + "base_url = {}\n", *NEEDED),
    "auth.resource": (["config", "auth", "resource"],
                      "[auth]\nmode = \"oauth\"\nresource = {}\n[[auth.issuers]]\nissuer = \"https://id.example\"\n", *NEEDED),
    "issuers.issuer": (["config", "auth", "issuers", 0, "issuer"], ISSUER + "issuer = {}\n", *NEEDED),
    "issuers.jwks_url": (["config", "auth", "issuers", 0, "jwks_url"],
                         ISSUER + "issuer = \"https://id.example\"\njwks_url = {}\n", *NEEDED),
    "telemetry.endpoint": (["config", "telemetry", "endpoint"], "[telemetry]\nendpoint = {}\n", *NEEDED),
    "auth.mode": (["config", "auth", "mode"], "[auth]\nmode = {}\n", ["none"], ["oidc", "basic", ""]),
    "pools.durability": (["pools", "web", "settings", "durability"],
                         "[pools.web]\nbackend = \"demo\"\ndurability = {}\n", ["auto", "never"], ["sometimes"]),
    "telemetry.protocol": (["config", "telemetry", "protocol"], "[telemetry]\nprotocol = {}\n", ["grpc"], ["zipkin"]),
}
OAUTH = {"mode": "oauth", "resource": "https://a.example/mcp", "issuers": [{"issuer": "https://id.example"}]}


def base(path):
    """Valid values around the setting."""
    values = yaml.safe_load(yaml.dump(TRIAL))
    values["networkPolicy"] = {"enabled": False}
    if path[:2] == ["config", "auth"] and path[2] != "mode":
        values["config"]["auth"] = yaml.safe_load(yaml.dump(OAUTH))
    if path[0] == "pools":
        document = {"openapi": {"document": "https://example.com/d"}}
        values["pools"]["web"] = {"backend": document if "openapi" in path else {"http": {}} if "http" in path else "demo"}
    return values


def chart_refuses(path, text):
    values = base(path)
    place = values
    for step in path[:-1]:
        place = place[step] if isinstance(step, int) else place.setdefault(step, {})
    place[path[-1]] = text
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.dump(values, file)
        file.flush()
        return helm("--values", file.name, "--kube-version", KUBERNETES).returncode != 0


def binary_refuses(binary, toml, text):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "shoal.toml")
        quoted = '"' + text + '"'
        path.write_text(toml.replace("{}", quoted))
        done = subprocess.run([binary, "config", "check", "--config", str(path)], env={"PATH": os.environ["PATH"]},
                              capture_output=True, text=True, timeout=30)
    return done.returncode != 0


def main():
    binary, report = sys.argv[1], Report()
    for name, (path, toml, good, bad) in SETTINGS.items():
        wrong = []
        for text, refused in [(text, False) for text in good] + [(text, True) for text in bad]:
            judged = {"the chart": chart_refuses(path, text), "the binary": binary_refuses(binary, toml, text)}
            wrong += [f"{who} {'takes' if refused else 'refuses'} {text!r}" for who, found in judged.items() if found != refused]
        report.say(f"{name}: {len(good)} taken, {len(bad)} refused by both", wrong)
    report.end()


if __name__ == "__main__":
    main()
