# shellcheck shell=bash
# Releases besides the one under load: each in a namespace of its own, which ends with its check.

# The kinds of the chart's objects, and pods.
KINDS=deployments,services,configmaps,secrets,serviceaccounts,roles,rolebindings,jobs,poddisruptionbudgets,networkpolicies,pods

# with_place NAMESPACE COMMAND…: runs the command while the namespace exists; only restricted pods may run there
with_place() {
    local NAMESPACE=$1
    must "place-$1" restricted_place || return 1
    "${@:2}" || true
    # Its pods make room for those of the next one.
    KUBECTL_SECONDS=130 must "place-$1-deleted" k delete namespace "$1" --timeout 120s
}

restricted_place() {
    k create namespace "$NAMESPACE" &&
        k label namespace "$NAMESPACE" pod-security.kubernetes.io/enforce=restricted pod-security.kubernetes.io/warn=restricted
}

# edge_url: where clients outside the cluster reach the edges
edge_url() { echo "http://$(service_address)/mcp"; }

# answers [OPTION…]: a call passes in both eras
answers() {
    local era said
    for era in legacy modern; do
        said=$(in_net client timeout -k 5 40 "$SHOAL_BIN" call echo '{"text": "trial"}' --url "$(edge_url)" --era "$era" --timeout 30s "$@") ||
            return 1
        [[ $said == *trial* ]] || { echo "the tool said: $said" && return 1; }
    done
}

# rolled_out: every Deployment of the namespace is there, as asked for
rolled_out() {
    local deployment
    for deployment in $(n get deployments -o name); do
        KUBECTL_SECONDS=190 n rollout status "$deployment" --timeout 180s || return 1
    done
}

# objects_as_they_are: every object but Helm's own, with what changes when somebody writes to it or starts it again
objects_as_they_are() {
    n get "$KINDS" -o json | python3 -c '
import hashlib, json, sys
for each in json.load(sys.stdin)["items"]:
    if each.get("type") == "helm.sh/release.v1":
        continue
    about = each["metadata"]
    held = json.dumps([each.get(part) for part in ("data", "rules", "subjects")], sort_keys=True)
    statuses = each.get("status", {}).get("containerStatuses", []) if each["kind"] == "Pod" else []
    starts = [status["restartCount"] for status in statuses]
    print(each["kind"], about["name"], about["uid"], about.get("generation"), hashlib.sha256(held.encode()).hexdigest()[:12], starts)
' | sort
}

# same_objects NAME BEFORE: false, and a failed check, if the objects are no longer as they were
same_objects() {
    local now
    now=$(objects_as_they_are)
    [[ $now == "$2" ]] && return
    fail "$1" "objects have changed: $(diff <(echo "$2") <(echo "$now") | grep '^[<>]' | cut -d ' ' -f 1-3 | paste -s -d ' ')"
    return 1
}

# no_distrust: no process of the release has refused another's certificate
no_distrust() {
    local refused
    refused=$(n logs --selector 'app.kubernetes.io/name=shoal,app.kubernetes.io/component!=certificates' --all-containers --prefix --tail -1 |
        grep -iE 'invalid peer certificate|fatal alert|UnknownIssuer|BadSignature|unknown ?ca' | head -n 1)
    [[ -z $refused ]] || { echo "$refused" && return 1; }
}

# bundled: values of a release with a Redis of its own, as a trial has it
bundled() {
    cat <<YAML
image: {repository: ${SHOAL_IMAGE%:*}, tag: ${SHOAL_IMAGE#*:}}
redis: {bundled: {enabled: true, image: {repository: ${REDIS_IMAGE%:*}, tag: ${REDIS_IMAGE#*:}}}}
config: {auth: {allow_anonymous: true}}
pools: {demo: {backend: demo}}
test: {tool: echo, arguments: {text: trial}}
YAML
}
