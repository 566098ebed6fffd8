#!/usr/bin/env python3
"""The connections that the rendered NetworkPolicies must allow, and those that they must block."""
import json

from chart import NAMESPACE, RELEASE, Report, render, value_files

PROMETHEUS = ("monitoring", {"app": "prometheus"})
STRANGER = ("default", {"app": "stranger"})
DNS = ("kube-system", {"k8s-app": "kube-dns"})

# From, to, port, and whether it must work. Names are components of the trial; others are pods elsewhere.
TRIAL = [
    ("edge", "session", 7000, True),
    ("session", "edge", 7000, True),
    ("edge", "edge", 7000, True),
    ("worker-demo", "edge", 7000, True),
    ("worker-demo", "session", 7000, True),
    ("edge", "redis", 6379, True),
    ("session", "redis", 6379, True),
    ("stranger", "edge", 8080, True),
    ("test", "edge", 8080, True),
    ("prometheus", "edge", 8081, True),
    ("prometheus", "session", 8081, True),
    ("prometheus", "worker-demo", 8081, True),
    ("edge", "worker-demo", 7001, True),
    ("session", "worker-demo", 7001, True),
    ("worker-demo", "redis", 6379, False),
    ("stranger", "worker-demo", 7001, False),
    ("prometheus", "worker-demo", 7001, False),
    ("worker-demo", "edge", 8081, False),
    ("worker-demo", "session", 8081, False),
    ("worker-demo", "edge", 8080, False),
    ("worker-demo", "stranger", 443, False),
    ("edge", "worker-demo", 8081, False),
    ("edge", "stranger", 443, False),
    ("stranger", "edge", 8081, False),
    ("stranger", "edge", 7000, False),
    ("stranger", "session", 7000, False),
    ("stranger", "session", 8080, False),
    ("stranger", "redis", 6379, False),
    ("prometheus", "redis", 6379, False),
    ("edge", "dns", 53, True),
    ("worker-demo", "dns", 53, True),
    ("worker-demo", "stranger", 53, False),
    ("edge", "dns", 443, False),
    ("test", "dns", 53, True),
    ("test", "session", 7000, False),
    ("test", "redis", 6379, False),
    ("stranger", "test", 8080, False),
    # The API server has no labels here, so its port is open to any pod.
    ("certificates", "stranger", 6443, True),
    ("certificates", "edge", 8080, False),
    ("certificates", "edge", 7000, False),
    ("certificates", "redis", 6379, False),
]


def matches(selector, labels):
    assert set(selector) <= {"matchLabels", "matchExpressions"}, selector
    for one in selector.get("matchExpressions", []):
        assert one["operator"] == "In", one
        if labels.get(one["key"]) not in one["values"]:
            return False
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())


def is_peer(peer, pod):
    """Whether one `from` or `to` matches a pod."""
    namespace, labels = pod
    if "ipBlock" in peer:
        return False
    if "namespaceSelector" in peer:
        if not matches(peer["namespaceSelector"], {"kubernetes.io/metadata.name": namespace}):
            return False
    elif namespace != NAMESPACE:
        return False
    return matches(peer.get("podSelector", {}), labels)


def allows(policies, direction, pod, other, port):
    """Whether the policies allow the other pod to reach `pod` (Ingress), or `pod` to reach it (Egress)."""
    namespace, labels = pod
    ours = [policy["spec"] for policy in policies
            if namespace == NAMESPACE and matches(policy["spec"]["podSelector"], labels)]
    ours = [spec for spec in ours if direction in spec["policyTypes"]]
    if not ours:
        return True
    side = "from" if direction == "Ingress" else "to"
    for rule in (rule for spec in ours for rule in spec.get(direction.lower(), [])):
        peers = rule.get(side)
        if peers is not None and not any(is_peer(peer, other) for peer in peers):
            continue
        if "ports" not in rule or any(entry["port"] == port and entry["protocol"] == "TCP" for entry in rule["ports"]):
            return True
    return False


def pods_of(objects):
    """The pods by component: (namespace, labels)."""
    found = {"prometheus": PROMETHEUS, "stranger": STRANGER, "dns": DNS}
    for item in objects:
        if item["kind"] in ("Deployment", "Job"):
            labels = item["spec"]["template"]["metadata"]["labels"]
            found[labels["app.kubernetes.io/component"]] = (NAMESPACE, labels)
        if item["kind"] == "Pod":
            found["test"] = (NAMESPACE, item["metadata"]["labels"])
    return found


def reaches(objects, source, target, port):
    pods = pods_of(objects)
    policies = [item for item in objects if item["kind"] == "NetworkPolicy"]
    return allows(policies, "Egress", pods[source], pods[target], port) and \
        allows(policies, "Ingress", pods[target], pods[source], port)


def main():
    report = Report()
    trial = render(value_files()["trial"])
    for source, target, port, expected in TRIAL:
        title = f"{source} {'reaches' if expected else 'does not reach'} {target}:{port}"
        report.say(title, [] if reaches(trial, source, target, port) == expected else ["it is the other way round"])

    production = render(value_files()["production"])
    for source, expected in (("test", True), ("stranger", False)):
        title = f"with networkPolicy.clients, {source} {'reaches' if expected else 'does not reach'} edge:8080"
        report.say(title, [] if reaches(production, source, "edge", 8080) == expected else ["it is the other way round"])
    # Redis and the collector are outside; lists the components with a rule for their ports.
    elsewhere = {"kubernetes.io/metadata.name": "telemetry"}
    for what, expected in {"6379": {"edge", "session"}, json.dumps(elsewhere): {"edge", "session", "worker-files", "worker-weather"}}.items():
        found = {item["metadata"]["labels"]["app.kubernetes.io/component"] for item in production
                 if item["kind"] == "NetworkPolicy"
                 for rule in item["spec"]["egress"] if what in json.dumps(rule)}
        report.say(f"{what} is open to {', '.join(sorted(expected))}", [] if found == expected else [str(found)])

    for name, values in value_files().items():
        services = [item for item in render(values) if item["kind"] == "Service"]
        open_ = [item["metadata"]["name"] for item in services for port in item["spec"]["ports"]
                 if port["targetPort"] in ("admin", 8081)]
        report.say(f"{name}: no Service leads to an admin port", open_)
        text = json.dumps([item["spec"]["selector"] for item in services])
        report.say(f"{name}: Services choose pods of this release", [] if RELEASE in text and services else [text])
    report.end()


if __name__ == "__main__":
    main()
