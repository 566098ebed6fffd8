# shellcheck shell=bash
# Autoscaling, and uninstalling.

check_autoscaling() {
    local name="autoscaling under load" scalers
    start_load "$name" 60 || return 0
    must helm-autoscaling h upgrade "$RELEASE" "$CHART" -f "$WORK/values.yaml" --set "image.tag=${NEXT_IMAGE#*:}" \
        --set-string defaults.podAnnotations.trial=upgraded --set defaults.autoscaling.enabled=true \
        --wait --timeout 50s || { drop_load; return 0; }
    scalers=$(n get horizontalpodautoscalers --no-headers | wc -l)
    [[ $scalers -eq 3 ]] || fail "$name" "$scalers autoscalers, not 3"
    still_loaded "$name" || true
    end_load "$name" unnoticed "$scalers autoscalers" || true
}

# leftovers: remaining objects of the namespace, without events and those that every namespace has
leftovers() {
    local kinds
    kinds=$(k api-resources --verbs list --namespaced -o name | grep -v '^events' | paste -s -d ,)
    n get "$kinds" --ignore-not-found -o name 2>/dev/null |
        grep -vx 'serviceaccount/default\|configmap/kube-root-ca.crt'
}

nothing_left() {
    local left
    left=$(leftovers || true)
    [[ -z $left ]] || { paste -s -d ' ' <<<"still there: $left" && return 1; }
}

check_uninstall() {
    local began=$SECONDS
    # Helm keeps a test's pods, so that their logs can be read.
    n delete pods --selector app.kubernetes.io/component=test --wait=false >/dev/null 2>&1 || true
    must helm-uninstall h uninstall "$RELEASE" --wait --timeout 120s || return 0
    wait_for 90 "uninstall" nothing_left || return 0
    pass "uninstall" "nothing left after $((SECONDS - began)) s"
}
