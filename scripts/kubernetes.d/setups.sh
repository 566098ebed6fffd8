# shellcheck shell=bash
# Other releases: each in its own namespace, which ends with its check.

# The kinds of the chart's objects, and pods.
KINDS=deployments,services,configmaps,secrets,serviceaccounts,roles,rolebindings,jobs,poddisruptionbudgets,networkpolicies,pods

# with_place NAMESPACE COMMAND…: runs the command in the namespace, where only restricted pods may run
with_place() {
    local NAMESPACE=$1
    must "place-$1" restricted_place || return 1
    "${@:2}" || true
    # Its pods make room for the next namespace.
    KUBECTL_SECONDS=130 must "place-$1-deleted" k delete namespace "$1" --timeout 120s
}

restricted_place() {
    k create namespace "$NAMESPACE" &&
        k label namespace "$NAMESPACE" pod-security.kubernetes.io/enforce=restricted pod-security.kubernetes.io/warn=restricted
}

# edge_url: the edges' URL for clients outside the cluster
edge_url() { echo "http://$(service_address)/mcp"; }

# answers [OPTION…]: whether calls of both eras succeed
answers() {
    local era said
    for era in legacy modern; do
        said=$(in_net client timeout -k 5 40 "$SHOAL_BIN" call echo '{"text": "trial"}' --url "$(edge_url)" --era "$era" --timeout 30s "$@") ||
            return 1
        [[ $said == *trial* ]] || { echo "the tool said: $said" && return 1; }
    done
}

# rolled_out: whether every Deployment of the namespace is complete
rolled_out() {
    local deployment
    for deployment in $(n get deployments -o name); do
        KUBECTL_SECONDS=190 n rollout status "$deployment" --timeout 180s || return 1
    done
}

# objects_as_they_are: every object except Helm's own, with the fields that a write or a restart changes
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

# same_objects NAME BEFORE: fails the check if the objects have changed
same_objects() {
    local now
    now=$(objects_as_they_are)
    [[ $now == "$2" ]] && return
    fail "$1" "objects have changed: $(diff <(echo "$2") <(echo "$now") | grep '^[<>]' | cut -d ' ' -f 1-3 | paste -s -d ' ')"
    return 1
}

# no_distrust: whether all processes of the release accept each other's certificates
no_distrust() {
    local refused
    refused=$(n logs --selector 'app.kubernetes.io/name=shoal,app.kubernetes.io/component!=certificates' --all-containers --prefix --tail -1 |
        grep -iE 'invalid peer certificate|fatal alert|UnknownIssuer|BadSignature|unknown ?ca' | head -n 1)
    [[ -z $refused ]] || { echo "$refused" && return 1; }
}

# bundled: values of a release with a bundled Redis, as in a trial
bundled() {
    cat <<YAML
image: {repository: ${SHOAL_IMAGE%:*}, tag: ${SHOAL_IMAGE#*:}}
redis: {bundled: {enabled: true, image: {repository: ${REDIS_IMAGE%:*}, tag: ${REDIS_IMAGE#*:}}}}
config: {auth: {allow_anonymous: true}}
pools: {demo: {backend: demo}}
test: {tool: echo, arguments: {text: trial}}
YAML
}
