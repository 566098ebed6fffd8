#!/usr/bin/env python3
"""Generates parts of the chart: values.schema.json, the tables of README.md, and the copies of deploy/.

    helm/generate.py --shoal target/release/shoal           writes them
    helm/generate.py --shoal target/release/shoal --check   reports outdated files

The schema joins helm/schema/chart.json with the output of `shoal config schema`. Needs only Python.
"""
import argparse
import copy
import json
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHART = HERE / "shoal"
DEPLOY = HERE.parent / "deploy"

# Settings that the chart makes itself, and the chart's values for them. The text is the setting's only allowed value,
# so Helm shows it to a user who sets the setting.
OURS = {
    "node": {
        "name": "set by the chart: the name of the pod",
        "roles": "set by the chart: edge, session and pools have Deployments of their own",
        "store": "set by the chart: use redis.url or redis.urlSecret",
    },
    "server": {
        "listen": "set by the chart: use bindAddress",
        "admin": "set by the chart: use bindAddress",
        "admin_token": "set by the chart: use adminToken.secret",
        "tls": "not served by the chart: end clients' TLS at the Ingress or the Gateway",
        "admin_tls": "set by the chart: use adminTls",
    },
    "cluster": {
        "listen": "set by the chart: use bindAddress",
        "advertise": "set by the chart: the address of the pod",
        "join": "set by the chart: the Service of the nodes",
        "presence_port": "set by the chart: 7001 in workers, as the network policy allows",
        "tls": "set by the chart: use tls",
        "insecure": "set by the chart: it is true where tls.enabled is false",
    },
    "redis": {
        "user": "set by the chart: use redis.user",
        "password": "set by the chart: use redis.passwordSecret",
        "tls": "set by the chart: use redis.tls.secret",
        "sentinel": "set by the chart: use redis.sentinel",
    },
}
OUR_TABLES = {
    "pools": "set by the chart: use pools, beside config",
    "discovery": "set by the chart: use controller, beside config",
    "state_keys": "set by the chart: use stateKeys.secret",
}


# Values that the binary refuses but its schema allows: times without units, and URLs without a scheme.
# helm/tests/same.py tests both with the same texts.
PERIOD = r"^\d+\s*[a-zµ]+(\s*\d+\s*[a-zµ]+)*$|^0$"
UNITS = ("nanos|nsec|ns|usec|us|µs|millis|msec|ms|seconds|second|secs|sec|s|minutes|minute|mins|min|m|hours|hour|hrs|hr|h|"
         "days|day|d|weeks|week|wks|wk|w|months|month|M|years|year|yrs|yr|y")
NUMBER = r"\d+(\.\d+)?"
TIME = rf"^(0|{NUMBER}\s*({UNITS})(\s*{NUMBER}\s*({UNITS}))*)$"
URLS = {
    "Auth": ["resource"],
    "Issuer": ["issuer", "jwks_url"],
    "Introspection": ["endpoint"],
    "Telemetry": ["endpoint"],
    "Http": ["url", "urls"],
    "OpenApi": ["base_url", "base_urls"],
    "ClientCredentials": ["token_endpoint", "issuer"],
    "TokenExchange": ["endpoint"],
}
# Empty means unset.
URL = "^$|^https?://[^/]"


def told_plainly(schema):
    """Lists choices as `enum`, because Helm's messages do not name the choices of `oneOf`. Requires units for times."""
    if isinstance(schema, list):
        return [told_plainly(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: told_plainly(value) for key, value in schema.items()}
    choices = schema.get("oneOf", [])
    if choices and all("const" in choice for choice in choices):
        del schema["oneOf"]
        schema["enum"] = [choice["const"] for choice in choices]
    if schema.get("pattern") == PERIOD:
        schema["pattern"] = TIME
    return schema


def with_urls(definitions):
    for table, settings in URLS.items():
        for setting in settings:
            members = definitions[table]["properties"]
            if setting not in members:
                sys.exit(f"helm/generate.py: {table} has no {setting}: correct URLS")
            part = members[setting].get("items", members[setting])
            part["pattern"] = URL


def without_defaults(schema):
    """Removes defaults, which docs/configuration.md has, because Helm does not apply them."""
    if isinstance(schema, list):
        return [without_defaults(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    # The members of `properties` are settings and may have any name.
    return {key: {name: without_defaults(part) for name, part in value.items()} if key == "properties"
            else without_defaults(value) for key, value in schema.items() if key != "default"}


def refuse(table, member, text):
    # Last, even if the binary does not know it.
    table["properties"].pop(member, None)
    table["properties"][member] = {"description": text, "enum": [text]}


def values_schema(shoal):
    """The chart's own schema, with Shoal's configuration and pool settings inserted."""
    printed = subprocess.run([shoal, "config", "schema"], check=True, capture_output=True, text=True).stdout
    binary = told_plainly(without_defaults(json.loads(printed)))
    with_urls(binary["$defs"])
    schema = json.loads((HERE / "schema" / "chart.json").read_text())
    own, theirs = schema["$defs"], binary["$defs"]
    clash = sorted(set(own) & set(theirs))
    if clash:
        sys.exit(f"helm/generate.py: both parts of the schema define {', '.join(clash)}: rename those of chart.json")

    tables = binary["properties"]
    for table, members in OURS.items():
        name = tables[table]["$ref"].rsplit("/", 1)[1]
        for member, text in members.items():
            refuse(theirs[name], member, text)
    config = {"type": "object", "additionalProperties": False, "properties": copy.deepcopy(tables)}
    for table, text in OUR_TABLES.items():
        refuse(config, table, text)
    own["Config"] = config

    settings = theirs.pop("Pool")
    settings["properties"].pop("backend")
    settings.pop("required", None)
    own["PoolSettings"] = settings
    own["pool"]["properties"] = {**own["component"]["properties"], **own["pool"]["properties"]}

    used = reachable({**own, **theirs}, schema["properties"])
    schema["$defs"] = {name: part for name, part in sorted({**own, **theirs}.items()) if name in used}
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def reachable(definitions, start):
    """The names of all definitions that `start` refers to."""
    found, open_ = set(), [start]
    while open_:
        for name in re.findall(r'"#/\$defs/([^"]+)"', json.dumps(open_.pop())):
            if name not in found:
                found.add(name)
                open_.append(definitions[name])
    return found


def documented(text):
    """The values whose comment begins with "--", in order: (path, default, comment)."""
    rows, path, comment, pending = [], [], [], None
    lines = text.splitlines()
    for at, line in enumerate(lines):
        stripped = line.strip()
        if stripped.startswith("# -- "):
            comment = [stripped[5:]]
        elif stripped.startswith("# ") and comment:
            comment.append(stripped[2:])
        elif match := re.match(r"( *)([A-Za-z]\w*):(?: +(.*))?$", line):
            depth = len(match[1]) // 2
            path = path[:depth] + [match[2]]
            if comment:
                pending = match[3]
                if pending is None:
                    pending = block(lines[at + 1:], len(match[1]))
                rows.append((".".join(path), pending, " ".join(comment)))
            comment = []
        else:
            comment = []
    return rows


def block(lines, indent):
    """A default written below its key, on one line of JSON-like YAML."""
    below = []
    for line in lines:
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        if line.strip() and not line.strip().startswith("#"):
            below.append(line.strip())
    if below and all(line.startswith("- ") for line in below):
        return "[" + ", ".join(line[2:] for line in below) + "]"
    return "{" + ", ".join(below) + "}" if all(": " in line for line in below) else "…"


def values_table():
    rows = documented((CHART / "values.yaml").read_text())
    cells = [f"| `{path}` | `{default}` | {comment.replace('|', chr(92) + '|')} |" for path, default, comment in rows]
    return "\n".join(["| value | default | |", "|---|---|---|", *cells])


def readme():
    text = (CHART / "README.md").read_text()
    begin, end = "<!-- values: begin -->\n", "\n<!-- values: end -->"
    before, rest = text.split(begin)
    return before + begin + values_table() + end + rest.split(end)[1]


def everything(shoal):
    """The expected content of each file."""
    files = {
        CHART / "values.schema.json": values_schema(shoal),
        CHART / "README.md": readme(),
        CHART / "files" / "alerts.yaml": (DEPLOY / "alerts.yaml").read_text(),
    }
    for dashboard in sorted((DEPLOY / "grafana" / "dashboards").glob("*.json")):
        files[CHART / "files" / "dashboards" / dashboard.name] = dashboard.read_text()
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shoal", required=True, help="the binary whose configuration the chart takes")
    parser.add_argument("--check", action="store_true", help="change nothing")
    arguments = parser.parse_args()
    files = everything(arguments.shoal)
    extra = set((CHART / "files").rglob("*.*")) - set(files)
    wrong = 0
    for path, text in sorted(files.items()):
        name = path.relative_to(HERE.parent)
        if path.exists() and path.read_text() == text:
            print(f"ok {name}")
        elif arguments.check:
            wrong += 1
            print(f"FAIL {name}: not up to date: run helm/generate.py --shoal BINARY")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"wrote {name}")
    for path in sorted(extra):
        wrong += 1
        print(f"FAIL {path.relative_to(HERE.parent)}: deploy/ has no such file: remove it")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
