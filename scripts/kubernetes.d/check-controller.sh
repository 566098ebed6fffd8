# shellcheck shell=bash
# Servers that are objects of the cluster become pools.

FOUND_SECONDS=150
SERVERS=team-a

# a_server: an MCP server in its own namespace, with a Service without labels for Shoal
a_server() {
    k create namespace "$SERVERS" || return 1
    k --namespace "$SERVERS" apply -f - <<YAML
apiVersion: apps/v1
kind: Deployment
metadata: {name: weather}
spec:
  selector: {matchLabels: {app: weather}}
  template:
    metadata: {labels: {app: weather}}
    spec:
      containers:
        - name: shoal
          image: $SHOAL_IMAGE
          imagePullPolicy: Never
          command: [/usr/local/bin/shoal]
          args: [serve, --demo, --listen, "0.0.0.0:8080"]
          env: [{name: SHOAL_AUTH__ALLOW_ANONYMOUS, value: "true"}]
---
apiVersion: v1
kind: Service
metadata: {name: weather}
spec:
  selector: {app: weather}
  ports: [{name: mcp, port: 8080}]
YAML
}

# toolhive_crd: the definition of ToolHive's objects for the API server
toolhive_crd() {
    k apply -f - <<YAML
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: mcpservers.toolhive.stacklok.dev}
spec:
  group: toolhive.stacklok.dev
  names: {kind: MCPServer, plural: mcpservers}
  scope: Namespaced
  versions:
    - name: v1alpha1
      served: true
      storage: true
      subresources: {status: {}}
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
YAML
}

# published NAME URL: an object as ToolHive's operator leaves it
published() {
    k --namespace "$SERVERS" apply -f - <<YAML || return 1
apiVersion: toolhive.stacklok.dev/v1alpha1
kind: MCPServer
metadata: {name: $1}
spec: {image: none}
YAML
    k --namespace "$SERVERS" patch mcpservers.toolhive.stacklok.dev "$1" --subresource status --type merge \
        --patch "{\"status\": {\"url\": \"$2\"}}"
}

# refused NAME REASON: whether an Event has this reason
refused() {
    k --namespace "$SERVERS" get events.events.k8s.io \
        -o 'jsonpath={range .items[*]}{.regarding.name} {.reason}{"\n"}{end}' | grep -qx "$1 $2"
}

controller_is_there() {
    h upgrade "$RELEASE" "$CHART" -f "$WORK/values.yaml" --set controller.enabled=true \
        --set "controller.namespaces={$SERVERS}" --set controller.replicas=2 --set controller.worker.replicas=1 \
        --wait --timeout 150s || return 1
    # Helm does not wait until old pods are gone.
    local component
    for component in edge session; do
        KUBECTL_SECONDS=80 n rollout status "deployment/$RELEASE-shoal-$component" --timeout 70s || return 1
    done
}

# all_pods: without those that are being removed after the last upgrade
all_pods() {
    n get pods -o 'go-template={{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}} {{.metadata.uid}}{{"\n"}}{{end}}{{end}}' | sort
}

servers_come_and_go() {
    local name=$1
    must server-labelled k --namespace "$SERVERS" label service weather shoal.dev/server=true || return 1
    wait_for "$FOUND_SECONDS" "$name: a Service" offered 6 weather_echo || return 1
    must toolhive-crd toolhive_crd || return 1
    wait_for 60 "$name: a kind that comes later" published storm "http://weather.$SERVERS.svc.cluster.local:8080/mcp" || return 1
    wait_for "$FOUND_SECONDS" "$name: an object of an operator" offered 6 storm_echo || return 1
    must server-elsewhere published elsewhere "http://kubernetes.default.svc/mcp" || return 1
    wait_for 60 "$name: a refusal" refused elsewhere TargetNotAllowed || return 1
    must server-unlabelled k --namespace "$SERVERS" label service weather shoal.dev/server- || return 1
    wait_for "$FOUND_SECONDS" "$name: removed" offered 0 weather_echo || return 1
}

check_controller() {
    must server a_server && must controller controller_is_there && same_pods_serve_them "servers of the cluster"
    must controller-off h upgrade "$RELEASE" "$CHART" -f "$WORK/values.yaml" --wait --timeout 150s || true
    k delete customresourcedefinition mcpservers.toolhive.stacklok.dev --ignore-not-found --wait=false >/dev/null || true
    k delete namespace "$SERVERS" --ignore-not-found --wait=false >/dev/null || true
}

same_pods_serve_them() {
    local name=$1 before after began=$SECONDS
    before=$(all_pods)
    if servers_come_and_go "$name"; then
        after=$(all_pods)
        if [[ $before == "$after" ]]; then
            pass "$name" "$(wc -l <<<"$after") pods stay, $((SECONDS - began)) s"
        else
            fail "$name" "pods were replaced: $(diff <(echo "$before") <(echo "$after") | paste -s -d ' ')"
        fi
    fi
}
