# shellcheck shell=bash
# A pool scales to zero and back with the first call. kubectl acts as the scaler: it reads the number of waiting calls and sets the
# replicas.

SCALED_SECONDS=60

# scaled REPLICAS: waits until the pool has that many pods
scaled() {
    n scale "deployment/$RELEASE-shoal-worker-idle" --replicas "$1" || return 1
    wait_for "$SCALED_SECONDS" "scaled to $1" has_pods "$1"
}

has_pods() {
    local pods
    pods=$(n get pods --selector app.kubernetes.io/component=worker-idle --no-headers 2>/dev/null | wc -l)
    [[ $pods -eq $1 ]] || { echo "there are $pods pods" && return 1; }
}

# a_call_waits: whether an edge or a session node reports one
a_call_waits() {
    local component pod
    for component in edge session; do
        for pod in $(pods_of "$component"); do
            n exec "$pod" -- /usr/local/bin/shoal status --output json | grep -q '"awaiting": *[1-9]' && return 0
        done
    done
    echo "no call waits"
    return 1
}

# restarted COMPONENT: with new pods, which have not seen the pool's worker
restarted() {
    n rollout restart "deployment/$RELEASE-shoal-$1" && n rollout status "deployment/$RELEASE-shoal-$1" --timeout 70s
}

pool_sleeps_and_wakes() {
    local name=$1
    must scale-added h upgrade "$RELEASE" "$CHART" -f "$WORK/values.yaml" --set pools.idle.backend=demo --set pools.idle.replicas=1 \
        --set pools.idle.settings.prefix=idle_ --set pools.idle.settings.scale_to_zero.wait=90s --wait --timeout 60s || return 1
    wait_for "$POOL_TAKEN_SECONDS" "$name: added" offered 6 idle_echo || return 1
    must scale-to-zero scaled 0 || return 1
    KUBECTL_SECONDS=80 must scale-edges restarted edge || return 1
    KUBECTL_SECONDS=80 must scale-sessions restarted session || return 1
    wait_for "$POOL_TAKEN_SECONDS" "$name: still listed" offered 6 idle_echo || return 1
    a_call_wakes_it "$name"
}

a_call_wakes_it() {
    local name=$1 call=$WORK/woken.txt caller
    in_net client timeout -k 5 100 "$SHOAL_BIN" call --url "http://$(service_address)/mcp" idle_echo '{"text": "awake"}' >"$call" 2>&1 &
    caller=$!
    if ! wait_for 30 "$name: a call waits" a_call_waits || ! must scale-back scaled 1; then
        kill "$caller" 2>/dev/null || true
        wait "$caller" || true
        return 1
    fi
    wait "$caller" && grep -qx awake "$call" || { fail "$name" "the call printed: $(tail -n 1 "$call")" && return 1; }
}

check_scale() {
    local name="a pool scales to zero and back" began=$SECONDS
    if pool_sleeps_and_wakes "$name"; then
        pass "$name" "listed without a pod by nodes that never saw one; the call that woke it is answered, $((SECONDS - began)) s"
    fi
    must scale-removed h upgrade "$RELEASE" "$CHART" -f "$WORK/values.yaml" --wait --timeout 150s || true
}
