"""Expected results of sets of values: by the set's name, a function that finds errors in the rendered objects."""
import json
import tomllib


class Rendered:
    """Rendered objects by name."""

    def __init__(self, objects):
        self.objects = objects

    def kinds(self, kind):
        return [item for item in self.objects if item["kind"] == kind]

    def get(self, kind, name):
        found = [item for item in self.kinds(kind) if item["metadata"]["name"] == name]
        return found[0] if found else {"metadata": {}, "spec": {}}

    def pod(self, component):
        return self.get("Deployment", f"shoal-{component}")["spec"]["template"]

    def container(self, component):
        return self.pod(component)["spec"]["containers"][0]

    def variables(self, component):
        return {one["name"]: one for one in self.container(component)["env"]}

    def ways(self, component):
        """A component's egress: (peer as JSON or "anywhere", ports)."""
        found = set()
        for rule in self.get("NetworkPolicy", f"shoal-{component}")["spec"].get("egress", []):
            ports = tuple(sorted({port["port"] for port in rule.get("ports", [])}))
            for peer in rule.get("to", ["anywhere"]):
                found.add((peer if peer == "anywhere" else json.dumps(peer, sort_keys=True), ports))
        return found


def anywhere(*ports):
    return ("anywhere", ports)


def address(cidr, *ports):
    return (json.dumps({"ipBlock": {"cidr": cidr}}), ports)


def namespace(name, *ports):
    return (json.dumps({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}), ports)


HERE = (json.dumps({"podSelector": {}}), ())


def everywhere(spec):
    """Checks each pod: a quota can count it."""
    for container in spec.get("initContainers", []) + spec["containers"]:
        resources = container.get("resources", {})
        for which, names in {"requests": ("cpu", "memory", "ephemeral-storage"), "limits": ("memory", "ephemeral-storage")}.items():
            for name in names:
                if name not in resources.get(which, {}):
                    yield f"{container['name']} has no {which}.{name}"
    for volume in spec.get("volumes", []):
        if volume.get("emptyDir", {"sizeLimit": 1}) == {} and volume["name"] != "data":
            yield f"the volume {volume['name']} has no limit"


def opens(component, *expected, closed=()):
    """The component can reach these destinations, and no others without a peer."""
    def check(rendered):
        ways = rendered.ways(component)
        wide = {way for way in ways if way[0] == "anywhere"} - set(expected)
        return [f"{component} cannot reach {way}" for way in expected if way not in ways] + \
            [f"{component} reaches {way}" for way in (*sorted(wide), *closed) if way in ways]
    return check


def mounted(component, name):
    """A volume's Secret: name, keys, paths, and whether the pod receives changes."""
    def find(rendered):
        mounts = [one for one in rendered.container(component)["volumeMounts"] if one["name"] == name]
        return [(one["secret"]["secretName"], sorted((item["key"], item["path"]) for item in one["secret"]["items"]),
                 [(mount["mountPath"], "subPath" in mount) for mount in mounts]) for one in volume(rendered, component, name)]
    return find


def configuration(component, file="shoal.toml"):
    """A file beside the component's configuration, parsed."""
    return lambda rendered: tomllib.loads(rendered.get("ConfigMap", f"shoal-{component}")["data"].get(file, ""))


def setting(component, *path, file="shoal.toml"):
    """A component's setting; None if it is not set."""
    def find(rendered):
        table = configuration(component, file)(rendered)
        for step in path:
            table = (table or {}).get(step)
        return table
    return find


def of_nodes(check):
    """The same for edges and session nodes."""
    return all_of(check("edge"), check("session"))


def all_of(*checks):
    return lambda rendered: [text for check in checks for text in check(rendered)]


def same(what, find, expected):
    """`find` returns the expected value."""
    def check(rendered):
        found = find(rendered)
        return [] if found == expected else [f"{what} is {found}, not {expected}"]
    return check


def ids(rendered):
    return [key for key in ("runAsUser", "runAsGroup", "fsGroup") if f'"{key}"' in json.dumps(rendered.objects)]


def images(rendered):
    return sorted({container["image"] for item in rendered.objects for container in containers(item)})


def containers(item):
    spec = item["spec"] if item["kind"] == "Pod" else item.get("spec", {}).get("template", {}).get("spec", {})
    return spec.get("initContainers", []) + spec.get("containers", [])


def protocols(rendered):
    return {item["metadata"]["name"].removeprefix("shoal-"): port.get("appProtocol")
            for item in rendered.kinds("Service") for port in item["spec"]["ports"]}


def unlimited(rendered):
    return [container["name"] for item in rendered.objects for container in containers(item)
            if set(container["resources"].get("limits", {})) != {"cpu", "memory", "ephemeral-storage"}]


def secrets(rendered):
    return {item["metadata"]["name"]: item.get("data") for item in rendered.kinds("Secret")}


def volume(rendered, component, name):
    return [one for one in rendered.pod(component)["spec"]["volumes"] if one["name"] == name]


def rights(rendered):
    """The rights of roles by name and namespace: resources with verbs, and the names that limit them."""
    return {(item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]):
            sorted((resource, *rule["verbs"], *rule.get("resourceNames", [])) for rule in item["rules"] for resource in rule["resources"])
            for kind in ("Role", "ClusterRole") for item in rendered.kinds(kind) if "certificates" not in item["metadata"]["name"]}


def own_rights(namespace):
    """The controller's rights to its own objects."""
    return {("Role", namespace, "shoal-controller"): [
        ("configmaps", "get", "update", "shoal-discovered"), ("leases", "create"), ("leases", "get", "update", "shoal-controller"),
        ("secrets", "get", "update", "shoal-discovered")]}


READS = [("events", "create"), ("mcpservers", "list", "watch"), ("mcpservers", "list", "watch"), ("services", "list", "watch")]

EXPECTED = {
    "servers of the cluster": all_of(
        opens("servers", namespace("team-a")), opens("controller", anywhere(443, 6443)), opens("worker-demo"), opens("edge"),
        same("rights", rights, {**own_rights("mcp"), ("Role", "team-a", "mcp-shoal-controller-reads-servers"): READS}),
        of_nodes(lambda one: same(f"the file of {one}", setting(one, "discovery", "file"), "/run/shoal/discovered/pools.toml")),
        of_nodes(lambda one: same(f"the volume of {one}", lambda it: volume(it, one, "discovered")[0].get("configMap"), {"name": "shoal-discovered", "optional": True})),
        same("the volume of workers", lambda it: volume(it, "servers", "discovered")[0].get("secret"), {"secretName": "shoal-discovered", "optional": True}),
        same("the certificate of workers", lambda it: volume(it, "servers", "tls")[0]["secret"]["secretName"], "shoal-made-any-pool"),
        same("other workers", lambda it: (volume(it, "worker-demo", "discovered"), setting("worker-demo", "discovery")(it)), ([], None)),
        same("names that are taken", lambda it: list(setting("controller", "pools")(it)), ["demo"]),
        same("what the controller makes itself", lambda it: it.kinds("Lease"), []),
        same("a process that is scraped", lambda it: it.pod("controller")["metadata"]["labels"].get("shoal.dev/process"), "true"),
        same("no node", lambda it: it.pod("controller")["metadata"]["labels"].get("shoal.dev/node"), None),
    ),
    "servers at addresses": all_of(
        opens("servers", namespace("team-a"), address("10.9.0.0/16"), address("10.8.0.7/32"), namespace("telemetry")),
        opens("controller", anywhere(443, 6443), namespace("telemetry")), opens("worker-demo", namespace("telemetry")),
        same("a list without rules", lambda it: "ingress" in it.get("NetworkPolicy", "shoal-controller")["spec"], False),
    ),
    "servers of all namespaces": same("rights", rights, {
        **own_rights("mcp"), ("ClusterRole", None, "mcp-shoal-controller-reads-servers"): sorted([*READS, ("secrets", "get")])}),
    "trial": all_of(
        same("protocols", protocols, {"edge": "http", "nodes": "tls", "redis": "redis"}),
        same("Secrets", secrets, {"shoal-made-authority": None, "shoal-made-nodes": None, "shoal-made-pool-demo": None}),
        opens("edge"), opens("session"), opens("worker-demo"), opens("certificates", anywhere(443, 6443)),
    ),
    "oauth": all_of(
        opens("edge", anywhere(8443), namespace("identity"), address("203.0.113.7/32", 443)),
        opens("session"), opens("worker-demo"),
    ),
    "oauth at a known address": opens("edge", address("203.0.113.0/24", 8443)),
    "pools behind URLs": all_of(
        opens("worker-web", anywhere(443), anywhere(9443), namespace("apps")),
        opens("worker-pets", HERE, anywhere(8444)), opens("worker-demo"), opens("edge"),
    ),
    "collector by name": all_of(*(opens(one, namespace("telemetry")) for one in ("edge", "session", "worker-demo"))),
    "collector by variable": opens("edge", anywhere(443)),
    "proxy": opens("worker-demo", anywhere(3128)),
    "Redis with TLS": all_of(opens("edge", address("10.0.0.9/32", 6380)), opens("worker-demo")),
    "Redis Sentinel in a namespace": opens("session", namespace("redis")),
    "Redis in a Secret": opens("edge", anywhere(6390)),
    "Redis by a password's file": all_of(
        of_nodes(lambda one: same(f"{one}: the password", mounted(one, "redis-password"), [("redis", [("password", "password")], [("/run/secrets/shoal/redis", False)])])),
        of_nodes(lambda one: same(f"{one}: settings", setting(one, "redis"), {"user": "shoal", "password": {"file": "/run/secrets/shoal/redis/password"}})),
        of_nodes(lambda one: same(f"{one}: variables", lambda it: "REDIS_PASSWORD" in it.variables(one), False)),
        same("workers", lambda it: (volume(it, "worker-demo", "redis-password"), setting("worker-demo", "redis")(it)), ([], None)),
        same("the test", lambda it: "redis" in json.dumps(it.get("Pod", "shoal-test")["spec"]), False),
    ),
    "Redis by a Secret and a password's file": of_nodes(lambda one: same(
        f"{one}: the password", setting(one, "redis", "password"), {"file": "/run/secrets/shoal/redis/password"})),
    "Redis with an authority": all_of(
        of_nodes(lambda one: same(f"{one}: files", mounted(one, "tls-redis"), [("redis-tls", [("ca.crt", "ca.crt")], [("/run/tls-redis", False)])])),
        of_nodes(lambda one: same(f"{one}: settings", setting(one, "redis"), {"tls": {"authority": "/run/tls-redis/ca.crt"}})),
        same("workers", lambda it: volume(it, "worker-demo", "tls-redis"), []),
    ),
    "Redis by certificates": all_of(
        of_nodes(lambda one: same(f"{one}: files", mounted(one, "tls-redis"), [
            ("redis-tls", [("client.crt", "tls.crt"), ("client.key", "tls.key")], [("/run/tls-redis", False)])])),
        of_nodes(lambda one: same(f"{one}: settings", setting(one, "redis", "tls"), {"certificate": "/run/tls-redis/tls.crt", "key": "/run/tls-redis/tls.key"})),
    ),
    "Redis Sentinel with files": all_of(
        of_nodes(lambda one: same(f"{one}: settings", setting(one, "redis"), {
            "user": "shoal", "password": {"file": "/run/secrets/shoal/redis/password"}, "tls": {"authority": "/run/tls-redis/ca.crt"},
            "sentinel": {"user": "watcher", "password": {"file": "/run/secrets/shoal/redis-sentinel/password"}, "tls": True}})),
        of_nodes(lambda one: same(f"{one}: the sentinels' password", mounted(one, "redis-sentinel-password"),
                                  [("redis", [("sentinel", "password")], [("/run/secrets/shoal/redis-sentinel", False)])])),
    ),
    "tokens of a Secret": all_of(
        same("the file", mounted("edge", "tokens"), [("tokens", [("list", "tokens.toml")], [("/run/secrets/shoal/tokens", False)])]),
        same("settings", setting("edge", "auth"), {"allow_anonymous": False, "mode": "tokens", "tokens_file": "/run/secrets/shoal/tokens/tokens.toml"}),
        same("variables", lambda it: [name for name in it.variables("edge") if "AUTH" in name], []),
        *(same(f"{one} without tokens", lambda it, one=one: (volume(it, one, "tokens"), setting(one, "auth")(it)), ([], None)) for one in ("session", "worker-demo")),
    ),
    "tokens and rules": all_of(
        same("the edges' files", lambda it: sorted(it.get("ConfigMap", "shoal-edge")["data"]), ["policy.toml", "shoal.toml", "tokens.toml"]),
        same("the session nodes' files", lambda it: sorted(it.get("ConfigMap", "shoal-session")["data"]), ["policy.toml", "shoal.toml"]),
        same("the workers' files", lambda it: sorted(it.get("ConfigMap", "shoal-worker-demo")["data"]), ["shoal.toml"]),
        of_nodes(lambda one: same(f"{one}: rules", setting(one, "rules", file="policy.toml"), [{"name": "all", "effect": "allow", "tools": ["echo"]}])),
        of_nodes(lambda one: same(f"{one}: policy", setting(one, "policy"), {"file": "/etc/shoal/policy.toml", "reread": "1s"})),
        of_nodes(lambda one: same(f"{one}: watches", setting(one, "reload"), {"watch": True})),
        same("tokens", setting("edge", "tokens", file="tokens.toml"), [{"name": "alice", "sha256": "ab" * 32}]),
        same("auth", setting("edge", "auth"), {"allow_anonymous": False, "mode": "tokens", "tokens_file": "/etc/shoal/tokens.toml"}),
        same("quotas of session nodes", setting("session", "quotas"), None),
        *(same(f"{table} of workers", setting("worker-demo", table), None) for table in ("policy", "quotas", "session", "reload", "auth")),
    ),
    "tokens and rules in files of one's own": all_of(
        of_nodes(lambda one: same(f"{one}: policy", lambda it: sorted(setting(one, "policy")(it)), ["file", "rules"])),
        of_nodes(lambda one: same(f"{one}: files", lambda it: sorted(it.get("ConfigMap", f"shoal-{one}")["data"]), ["shoal.toml"])),
        of_nodes(lambda one: same(f"{one}: does not watch", setting(one, "reload"), {"watch": False})),
    ),
    "Redis at its peers": opens("edge", address("10.9.0.0/16", 6390)),
    "DNS elsewhere": opens("edge", address("10.96.0.10/32", 1053)),
    "no network policy": same("policies", lambda it: it.kinds("NetworkPolicy"), []),
    "own variables": all_of(
        same("the name", lambda it: it.variables("edge")["SHOAL_NODE__NAME"], {"name": "SHOAL_NODE__NAME", "value": "mine"}),
        same("A", lambda it: it.variables("edge")["A"]["value"], "2"),
        same("HOME", lambda it: it.variables("worker-files")["HOME"]["value"], "/data"),
        same("TOKEN", lambda it: it.variables("worker-files")["TOKEN"], {"name": "TOKEN", "value": "other"}),
    ),
    "own labels": all_of(
        same("the pod's team", lambda it: it.pod("edge")["metadata"]["labels"]["team"], "b"),
        same("the Ingress's team", lambda it: it.get("Ingress", "shoal-edge")["metadata"]["labels"]["team"], "c"),
        same("part-of", lambda it: it.get("Deployment", "shoal-edge")["metadata"]["labels"]["app.kubernetes.io/part-of"], "tools"),
        same("a", lambda it: it.get("Deployment", "shoal-edge")["metadata"]["annotations"]["a"], "2"),
        same("the tier", lambda it: it.get("PodDisruptionBudget", "shoal-session")["metadata"]["labels"]["tier"], "back"),
    ),
    "own volumes": all_of(
        same("tmp", lambda it: [list(one) for one in volume(it, "worker-demo", "tmp")], [["name", "persistentVolumeClaim"]]),
        same("/tmp", lambda it: [one["name"] for one in it.container("worker-demo")["volumeMounts"] if one["mountPath"] == "/tmp"], ["data"]),
    ),
    "sidecars": all_of(
        same("containers", lambda it: [one["name"] for one in it.pod("edge")["spec"]["containers"]], ["shoal", "proxy"]),
        same("init containers", lambda it: [one["name"] for one in it.pod("edge")["spec"]["initContainers"]], ["vault"]),
        same("the hook", lambda it: list(it.container("edge")["lifecycle"]), ["preStop"]),
        same("the token", lambda it: it.pod("edge")["spec"]["automountServiceAccountToken"], True),
    ),
    "places": same("schedulers", lambda it: {
        (item["spec"].get("template") or item)["spec"].get("schedulerName") for item in it.kinds("Deployment") + it.kinds("Job") + it.kinds("Pod")
    }, {"bin-packing"}),
    "budgets": all_of(
        same("budgets", lambda it: [item["metadata"]["name"] for item in it.kinds("PodDisruptionBudget")], ["shoal-session", "shoal-worker-demo"]),
        same("a budget", lambda it: sorted(it.get("PodDisruptionBudget", "shoal-session")["spec"]),
             ["minAvailable", "selector", "unhealthyPodEvictionPolicy"]),
    ),
    "load balancer": all_of(
        same("the class", lambda it: it.get("Service", "shoal-edge")["spec"]["loadBalancerClass"], "service.k8s.aws/nlb"),
        same("the sources", lambda it: it.get("Service", "shoal-edge")["spec"]["loadBalancerSourceRanges"], ["10.0.0.0/8"]),
        same("families of nodes", lambda it: it.get("Service", "shoal-nodes")["spec"]["ipFamilies"], ["IPv4", "IPv6"]),
        same("the protocol", lambda it: protocols(it)["edge"], "kubernetes.io/h2c"),
    ),
    "scaling": same("metrics", lambda it: [one["type"] for one in it.get("HorizontalPodAutoscaler", "shoal-edge")["spec"]["metrics"]], ["External"]),
    "monitoring by Services": all_of(
        same("monitors", lambda it: [item["metadata"]["labels"]["release"] for item in it.kinds("ServiceMonitor")], ["prometheus"]),
        same("protocols", lambda it: protocols(it)["metrics"], "http"),
    ),
    "monitoring with TLS": same("protocols", lambda it: protocols(it)["metrics"], "https"),
    "ingress by prefix": all_of(
        same("the body", lambda it: it.get("Ingress", "shoal-edge")["metadata"]["annotations"]["nginx.ingress.kubernetes.io/proxy-body-size"], "8388608"),
        same("path types", lambda it: {path["pathType"] for rule in it.get("Ingress", "shoal-edge")["spec"]["rules"] for path in rule["http"]["paths"]}, {"Prefix"}),
    ),
    "route with filters": same("filters", lambda it: it.get("HTTPRoute", "shoal-edge")["spec"]["rules"][0]["filters"][0]["type"], "RequestHeaderModifier"),
    "Istio": all_of(
        same("protocols", lambda it: protocols(it)["nodes"], "kubernetes.io/h2c"),
        *(opens(one, namespace("istio-system", 15012)) for one in ("edge", "session", "worker-demo", "redis", "test")),
        same("policies without the mesh", lambda it: [item["metadata"]["name"] for item in it.kinds("NetworkPolicy")
                                                      if "15008" not in json.dumps(item["spec"]["ingress"])], []),
    ),
    "rollout of TLS": same("protocols", lambda it: protocols(it)["nodes"], "tcp"),
    "certificates of a Secret": all_of(
        same("Jobs", lambda it: it.kinds("Job"), []),
        same("the Secret", lambda it: volume(it, "worker-demo", "tls")[0]["secret"]["secretName"], "own"),
    ),
    "certificates of cert-manager": all_of(
        same("Jobs", lambda it: it.kinds("Job"), []),
        same("certificates", lambda it: len(it.kinds("Certificate")), 3),
    ),
    "certificates of a Job": all_of(
        same("Secrets", lambda it: sorted(secrets(it)), ["shoal-made-authority", "shoal-made-nodes", "shoal-made-pool-a-b", "shoal-made-pool-demo"]),
        same("rights", lambda it: [(rule["verbs"], sorted(rule["resourceNames"])) for item in it.kinds("Role") for rule in item["rules"]],
             [(["get", "patch"], ["shoal-made-authority", "shoal-made-nodes", "shoal-made-pool-a-b", "shoal-made-pool-demo"])]),
    ),
    "OpenShift": same("ids", ids, []),
    "quotas": same("containers without limits", unlimited, []),
    "one account": same("accounts", lambda it: len([1 for item in it.kinds("ServiceAccount") if item["metadata"]["name"] == "shoal"]), 1),
    "odd names": same("names", lambda it: [item["metadata"]["name"] for item in it.kinds("Service")
                                           if not item["metadata"]["name"].startswith("tools-of-mine-")], []),
    "no test": all_of(
        same("pods", lambda it: it.kinds("Pod"), []),
        same("policies", lambda it: it.get("NetworkPolicy", "shoal-test")["spec"], {}),
    ),
    "more objects": same("objects", lambda it: [it.get("ConfigMap", name).get("apiVersion") for name in ("shoal-more", "shoal-text")], ["v1", "v1"]),
    "subchart with globals": all_of(
        same("ids", ids, []),
        same("images", images, ["mirror.example.com/hub/library/redis:7.4-alpine", "mirror.example.com/hub/shoal:0.1.0"]),
        same("pull secrets", lambda it: [one["name"] for one in it.pod("edge")["spec"]["imagePullSecrets"]], ["one", "two", "three"]),
    ),
    "subchart that is off": same("objects", lambda it: it.objects, []),
}
