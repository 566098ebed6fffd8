#!/usr/bin/env python3
"""Which pods an upgrade replaces: compares renders before and after a change of values.

Settings that processes reload (pools, quotas, rules, tokens) replace no edge and no session node. Apart from Deployments, a change may
touch only what it names: ConfigMaps, a pool's objects, and the certificates' Job.
"""
import copy
import tempfile
from pathlib import Path

import yaml

from chart import Report, render
from sets import TRIAL, merged

DIGEST = "ab" * 32
RULE = {"name": "all", "effect": "allow", "tools": ["*"]}
PETS = {"backend": {"openapi": {"document": "https://pets.example.com/openapi.json"}}, "settings": {"prefix": "pets_"}}
BASE = merged(TRIAL, {
    "config": {
        "auth": {"mode": "tokens", "allow_anonymous": False, "tokens": [{"name": "alice", "sha256": DIGEST}]},
        "quotas": [{"name": "calls", "per": "principal", "rate": "10/s"}],
        "policy": {"rules": [RULE]},
    },
    "pools": {"pets": PETS},
})
NODES = ["edge", "session"]
WORKERS = ["worker-demo", "worker-pets"]


def config(**tables):
    return {"config": tables}


def pool(**values):
    return {"pools": {"pets": values}}


# Values before and after (each over BASE), and the components whose pods are replaced.
CHANGES = {
    "nothing": ({}, {}, []),
    "a pool is added": ({}, {"pools": {"late": {"backend": "demo", "settings": {"prefix": "late_", "tools": {"deny": ["echo"]}}}}}, []),
    "a pool is removed": ({}, {"pools": {"pets": None}}, []),
    "a foreign worker is added": ({}, {"pools": {"late": {"foreignWorker": True, "image": {"repository": "late", "tag": "1"}}}}, []),
    "a pool is added beside the controller": (
        {"controller": {"enabled": True, "namespaces": ["team-a"]}}, {"pools": {"late": {"backend": "demo"}}}, []),
    "a pool's prefix": ({}, pool(settings={"prefix": "animals_"}), ["worker-pets"]),
    "a pool's tools": ({}, pool(settings={"tools": {"deny": ["delete*"]}}), ["worker-pets"]),
    "a pool's limit": ({}, pool(settings={"concurrency": 3}), ["worker-pets"]),
    "a pool's backend": ({}, pool(backend={"openapi": {"headers": {"x-a": "1"}}}), ["worker-pets"]),
    "a limit of a pool that watches": (pool(config={"reload": {"watch": True}}), pool(settings={"concurrency": 3}), []),
    "the backend of a pool that watches": (pool(config={"reload": {"watch": True}}), pool(backend={"openapi": {"headers": {"x-a": "1"}}}), ["worker-pets"]),
    "a quota is added": ({}, config(quotas=[*BASE["config"]["quotas"], {"name": "all", "per": "all", "rate": "100/s"}]), []),
    "a quota is changed": ({}, config(quotas=[{"name": "calls", "per": "principal", "rate": "20/s"}]), []),
    "all quotas are removed": ({}, config(quotas=[]), []),
    "a rule is added": ({}, config(policy={"rules": [RULE, {"name": "no", "effect": "deny", "tools": ["pay"]}]}), []),
    "a rule is changed": ({}, config(policy={"rules": [{**RULE, "tools": ["echo"]}]}), []),
    "the first rule": (config(policy={"rules": []}), config(policy={"rules": [RULE]}), []),
    "the last rule": ({}, config(policy={"rules": []}), []),
    "the first table of rules": (config(policy=None), config(policy={"rules": [RULE]}), []),
    "whether unnamed pools are offered": ({}, config(catalog={"unnamed_pools": True}), [*NODES, *WORKERS]),
    "a token is added": ({}, config(auth={"tokens": [{"name": "alice", "sha256": DIGEST}, {"name": "bob", "sha256": "cd" * 32}]}), []),
    "how tokens are checked": ({}, config(auth={"required_scopes": ["a"]}), ["edge"]),
    "what edges serve": ({}, config(server={"allowed_origins": ["https://app.example.com"]}), ["edge"]),
    "what edges alone get": ({}, {"edge": {"config": {"limits": {"streams": 5}}}}, ["edge"]),
    "what session nodes alone get": ({}, {"session": {"config": {"session": {"idle": "5m"}}}}, ["session"]),
    "sessions": ({}, config(session={"idle": "5m"}), NODES),
    "limits": ({}, config(limits={"connections": 500}), [*NODES, *WORKERS]),
    "the user at Redis": (
        {"redis": {"bundled": {"enabled": False}, "url": "redis://redis", "user": "a", "passwordSecret": {"name": "redis"}}},
        {"redis": {"user": "b"}}, NODES),
    "a pool, where nobody watches": (config(reload={"watch": False}), {"pools": {"late": {"backend": "demo"}}}, NODES),
    "a quota, where nobody watches": (config(reload={"watch": False}), config(quotas=[]), ["edge"]),
}


def without_nulls(values):
    """Removes None, because not every release of Helm removes null before it checks the schema."""
    if not isinstance(values, dict):
        return values
    return {key: without_nulls(value) for key, value in values.items() if value is not None}


def rendered(values):
    """Objects by kind and name, without those of the certificates' Job."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.dump(without_nulls(values), file)
        file.flush()
        objects = render(Path(file.name))
    return {(item["kind"], item["metadata"]["name"].removeprefix("shoal-")): item for item in objects
            if item["metadata"]["labels"]["app.kubernetes.io/component"] != "certificates"}


def template(item):
    return item["spec"]["template"]


def wrong(before, after, pods):
    """The objects that a change replaces or touches but should not."""
    both = [key for key in before if key in after]
    replaced = sorted(name for kind, name in both
                      if kind == "Deployment" and template(before[kind, name]) != template(after[kind, name]))
    if replaced != sorted(pods):
        yield f"new pods for {replaced}, not {sorted(pods)}"
    for kind, name in both:
        ours = kind == "ConfigMap" or (kind == "Deployment" and name in pods) or name == "worker-pets"
        if not ours and before[kind, name] != after[kind, name]:
            yield f"{kind} {name} differs"


def main():
    report = Report()
    for name, (first, second, pods) in CHANGES.items():
        start = merged(copy.deepcopy(BASE), first)
        before, after = rendered(start), rendered(merged(start, second))
        found = list(wrong(before, after, pods))
        if name != "nothing" and before == after:
            found.append("nothing changes at all")
        report.say(f"{name}: new pods for {', '.join(pods) or 'nobody'}", found)
    # Tests this check: it detects a replacement of pods.
    start = rendered(BASE)
    report.say("a replaced pod is found", [] if list(wrong(start, rendered(merged(BASE, config(limits={"connections": 500}))), [])) else ["it is not"])
    report.end()


if __name__ == "__main__":
    main()
