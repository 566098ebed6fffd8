#!/usr/bin/env python3
"""Checks every rendered pod against the profile `restricted` of the Pod Security Standards, and against the chart's own promises: no token,
a read-only root, no service links.
"""
from chart import Report, pods, render, value_files

VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}


def of_pod(spec):
    context = spec.get("securityContext", {})
    if context.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"):
        yield "securityContext.seccompProfile is not RuntimeDefault"
    if context.get("runAsNonRoot") is not True:
        yield "securityContext.runAsNonRoot is not true"
    if context.get("runAsUser") == 0:
        yield "securityContext.runAsUser is 0"
    if context.get("sysctls"):
        yield "securityContext.sysctls are set"
    for share in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(share):
            yield f"{share} is set"
    for volume in spec.get("volumes", []):
        kinds = set(volume) - {"name"}
        if not kinds <= VOLUMES:
            yield f"volume {volume['name']} is {', '.join(kinds - VOLUMES)}"
    # Only the Job that fills Secrets and the controller use the API server.
    if spec.get("automountServiceAccountToken") is not spec.get("serviceAccountName", "").endswith(("-certificates", "-controller")):
        yield "automountServiceAccountToken is not false"
    if spec.get("enableServiceLinks") is not False:
        yield "enableServiceLinks is not false"


def of_container(container):
    context = container.get("securityContext", {})
    capabilities = context.get("capabilities", {})
    if context.get("allowPrivilegeEscalation") is not False:
        yield "allowPrivilegeEscalation is not false"
    if capabilities.get("drop") != ["ALL"]:
        yield "capabilities.drop is not [ALL]"
    if set(capabilities.get("add", [])) - {"NET_BIND_SERVICE"}:
        yield "capabilities.add has more than NET_BIND_SERVICE"
    if context.get("readOnlyRootFilesystem") is not True:
        yield "readOnlyRootFilesystem is not true"
    for setting in ("privileged", "procMount"):
        if context.get(setting):
            yield f"{setting} is set"
    if context.get("runAsNonRoot") is False or context.get("runAsUser") == 0:
        yield "runs as root"
    if any("hostPort" in port for port in container.get("ports", [])):
        yield "a hostPort is set"
    if not container.get("resources", {}).get("limits", {}).get("memory"):
        yield "there is no limit of memory"


def wrong(spec):
    yield from of_pod(spec)
    for container in spec.get("initContainers", []) + spec["containers"]:
        for text in of_container(container):
            yield f"{container['name']}: {text}"


def main():
    report = Report()
    for values_name, values in value_files().items():
        found = list(pods(render(values)))
        reasons = [f"{name}: {text}" for name, spec in found for text in wrong(spec)]
        report.say(f"{values_name} ({len(found)} pods)", reasons if found else ["there are no pods"])
    # Tests this check: an empty pod breaks every rule that requires something.
    bare = list(wrong({"containers": [{"name": "bare"}]}))
    report.say("a pod without settings is refused", [] if len(bare) == 8 else [f"only {bare}"])
    report.end()


if __name__ == "__main__":
    main()
