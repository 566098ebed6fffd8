# shellcheck shell=bash
# The chart comes up where only restricted pods may run.

check_install() {
    local began=$SECONDS
    k create namespace "$NAMESPACE" >"$LOGS/namespace.log" 2>&1
    k label namespace "$NAMESPACE" pod-security.kubernetes.io/enforce=restricted \
        pod-security.kubernetes.io/warn=restricted >>"$LOGS/namespace.log" 2>&1
    values >"$WORK/values.yaml"
    if ! must helm-install h install "$RELEASE" "$CHART" -f "$WORK/values.yaml" --wait --timeout 300s; then
        n get pods -o wide
        return 1
    fi
    pass "helm install" "$(n get pods --no-headers | grep -c ' 1/1 ') pods ready in $((SECONDS - began)) s"
    if grep -qi warning "$(log_of helm-install)"; then
        fail "restricted" "$(grep -i warning "$(log_of helm-install)" | head -n 1)"
    fi
}
