# shellcheck shell=bash
# The chart starts where only restricted pods may run.

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
    check_certificates "certificates"
}

# made_by_job: the digest of the authority in its Secret
made_by_job() { n get secret "$RELEASE-shoal-made-authority" -o 'jsonpath={.data.tls\.crt}' | sha256sum | cut -c 1-12; }

AUTHORITY=

# check_certificates NAME: the Job has filled the Secrets, and later Jobs keep the authority
check_certificates() {
    local now secrets
    secrets=$(n get secrets --selector app.kubernetes.io/component=certificates \
        -o 'go-template={{range .items}}{{if .data}}{{.metadata.name}} {{end}}{{end}}')
    now=$(made_by_job)
    if [[ $(wc -w <<<"$secrets") -ne 3 ]]; then
        fail "$1" "not all Secrets are filled: $secrets"
    elif [[ -n $AUTHORITY && $now != "$AUTHORITY" ]]; then
        fail "$1" "the authority is another one: $now, not $AUTHORITY"
    else
        AUTHORITY=$now
        pass "$1" "3 Secrets, authority $now"
    fi
}

# rendered: the chart's objects, without a cluster
rendered() { h template "$RELEASE" "$CHART" -f "$WORK/applied.yaml" --no-hooks >"$WORK/objects.yaml"; }

# Helm 4, Flux and Argo CD use server-side apply, which refuses duplicate names in lists. The check uses the name of a release that does not
# exist, because Helm 3 owns the fields of its own releases.
check_server_side_apply() {
    local name="server-side apply" RELEASE=other
    {
        values
        cat <<YAML
defaults: {extraEnv: [{name: SHOAL_NODE__NAME, value: a}, {name: A, value: "1"}, {name: A, value: "2"}], podLabels: {team: a}}
extraLabels: {team: b, app.kubernetes.io/part-of: tools}
YAML
    } >"$WORK/applied.yaml"
    must helm-template rendered || return 0
    must apply-server-side n apply --server-side --force-conflicts --dry-run=server -f "$WORK/objects.yaml" || return 0
    pass "$name" "$(wc -l <"$(log_of apply-server-side)") objects taken"
}

# ready_pods COMPONENT: its number of ready pods
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

# Checks the kernel's view, because a manifest alone proves nothing.
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
