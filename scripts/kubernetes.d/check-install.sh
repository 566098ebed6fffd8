# shellcheck shell=bash
# The chart comes up where only restricted pods may run.

check_install() {
    local began=$SECONDS
    must namespace k create namespace "$NAMESPACE" || return 1
    must namespace-restricted k label namespace "$NAMESPACE" pod-security.kubernetes.io/enforce=restricted \
        pod-security.kubernetes.io/warn=restricted || return 1
    values >"$WORK/values.yaml"
    if ! must helm-install h install "$RELEASE" "$CHART" -f "$WORK/values.yaml" --wait --timeout 300s; then
        n get pods -o wide
        return 1
    fi
    pass "helm install" "ready in $((SECONDS - began)) s"
    check_replicas
    check_restricted
    check_spread
}

# ready_pods COMPONENT: how many of its pods are ready
ready_pods() {
    n get pods --selector "app.kubernetes.io/component=$1" --no-headers | grep -c ' 1/1  *Running ' || true
}

check_replicas() {
    local component expected seen=''
    for component in edge:2 session:2 worker-demo:2 redis:1; do
        expected=${component#*:} component=${component%:*}
        if [[ $(ready_pods "$component") -ne $expected ]]; then
            fail "replicas" "$(ready_pods "$component") pods of $component are ready, not $expected"
            return
        fi
        seen+="${seen:+, }$expected $component"
    done
    pass "replicas" "$seen"
}

# As the kernel sees them, since what a manifest asks for is easily said.
check_restricted() {
    local pid name processes=0
    if grep -q 'would violate PodSecurity' "$(log_of helm-install)"; then
        fail "restricted" "$(grep 'would violate PodSecurity' "$(log_of helm-install)" | head -n 1)"
        return
    fi
    for pid in $(pgrep -x 'shoal|redis-server'); do
        name=$(cat "/proc/$pid/comm")
        if ! grep -q '^Uid:\s65532\s65532\s65532\s65532$' "/proc/$pid/status"; then
            fail "restricted" "$name does not run as 65532: $(grep ^Uid "/proc/$pid/status")"
        elif ! grep -Eq '^([^ ]+ ){4}/ ro,' "/proc/$pid/mountinfo"; then
            fail "restricted" "$name can write to its root"
        elif ! grep -q '^CapBnd:\s0*$' "/proc/$pid/status" || ! grep -q '^NoNewPrivs:\s1$' "/proc/$pid/status" ||
            ! grep -q '^Seccomp:\s2$' "/proc/$pid/status"; then
            fail "restricted" "$name has capabilities, may gain some, or is not filtered"
        else
            processes=$((processes + 1))
            continue
        fi
        return
    done
    [[ $processes -ge 7 ]] || { fail "restricted" "only $processes processes are there" && return; }
    pass "restricted" "$processes processes: not root, read-only root, no capabilities, seccomp"
}

check_spread() {
    local component
    for component in edge session worker-demo; do
        if [[ $(n get pods --selector "app.kubernetes.io/component=$component" -o 'jsonpath={.items[*].spec.nodeName}' |
            tr ' ' '\n' | sort -u | wc -l) -ne 2 ]]; then
            fail "spread" "both pods of $component are on one node"
            return
        fi
    done
    pass "spread" "no two pods of a component on one node"
}

check_helm_test() {
    local began=$SECONDS
    must helm-test h test "$RELEASE" --logs --timeout 120s || return 0
    pass "helm test" "tools listed and called through the Service, $((SECONDS - began)) s"
}
