# shellcheck shell=bash
# Pods end during calls: killed, deleted in order, evicted.

LOST_SECONDS=30

# lose NAME unnoticed|resumed kill_pod|leave_pod COMPONENT: ends one of its pods under load
lose() {
    local name=$1 how=$2 end=$3 component=$4 modern=$MODERN pods pod
    mapfile -t pods < <(pods_of "$component")
    pod=${pods[0]}
    # Clients of 2026-07-28 cannot resume a stream, so a killed edge fails their calls.
    [[ $how == unnoticed ]] || modern=0
    start_load "$name" "$LOST_SECONDS" "$modern" || return 0
    must "$end-$pod" "$end" "$pod" || true
    sleep 1
    KUBECTL_SECONDS=80 must "successor-of-$pod" n rollout status "deployment/$RELEASE-shoal-$component" --timeout 70s || true
    still_loaded "$name" || true
    end_load "$name" "$how" || true
}

leave_pod() { n delete pod "$1" --wait=false; }

# kill_pod POD: at once. Kubernetes would send SIGTERM first and wait two seconds, even if forced.
kill_pod() {
    local pid
    for pid in $(pgrep -x shoal); do
        ! grep -qzx "HOSTNAME=$1" "/proc/$pid/environ" || kill -KILL "$pid" || return 1
    done
    n delete pod "$1" --wait=false --grace-period=0 --force
}

check_lost() {
    lose "session pod killed" unnoticed kill_pod session
    lose "edge pod killed" resumed kill_pod edge
    lose "session pod deleted" unnoticed leave_pod session
    lose "edge pod deleted" unnoticed leave_pod edge
    lose "worker pod deleted" unnoticed leave_pod worker-demo
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
