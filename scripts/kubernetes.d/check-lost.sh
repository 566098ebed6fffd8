# shellcheck shell=bash
# Pods go in the middle of calls: killed, deleted in order, evicted.

LOST_SECONDS=45

# lose NAME HOW COMPONENT [DELETE-OPTION…]: one pod of it, under load
lose() {
    local name=$1 how=$2 component=$3 modern=$MODERN pod
    shift 3
    pod=$(pods_of "$component" | head -n 1)
    # Modern clients have no way back into a stream: what a kill breaks for them is as the specification says.
    [[ $how == rolled ]] || modern=0
    start_load "$name" "$LOST_SECONDS" "$modern" || return 0
    must "delete-$pod" n delete pod "$pod" --wait=false "$@" || true
    sleep 1
    KUBECTL_SECONDS=80 must "successor-of-$pod" n rollout status "deployment/$RELEASE-shoal-$component" --timeout 70s || true
    still_loaded "$name" || true
    end_load "$name" "$how" || true
}

check_lost() {
    lose "session pod killed" lost session --grace-period=0 --force
    lose "edge pod killed" lost edge --grace-period=0 --force
    lose "session pod deleted" rolled session
    lose "edge pod deleted" rolled edge
    lose "worker pod deleted" rolled worker-demo
}

# evict POD: by the API that a drain of a node uses
evict() {
    printf '{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "%s", "namespace": "%s"}}' "$1" "$NAMESPACE" >"$WORK/eviction.json"
    n create --raw "/api/v1/namespaces/$NAMESPACE/pods/$1/eviction" -f "$WORK/eviction.json"
}

check_budgets() {
    local pods name="evictions"
    mapfile -t pods < <(pods_of session)
    must evict-first evict "${pods[0]}" || return 0
    if try evict-second evict "${pods[1]}"; then
        fail "$name" "both session pods could be evicted at once"
    elif grep -q "violate the pod's disruption budget" "$(log_of evict-second)"; then
        pass "$name" "one session pod goes, the other may not: $(n get poddisruptionbudgets --no-headers | wc -l) budgets"
    else
        fail "$name" "$(tail -n 1 "$(log_of evict-second)")"
    fi
    must after-eviction n rollout status "deployment/$RELEASE-shoal-session" --timeout 55s || true
}
