# shellcheck shell=bash
# Everything is replaced under clients, in order: by an upgrade, by a rollback, by evictions.

UPGRADE_SECONDS=90

# pods_of COMPONENT: their names
pods_of() {
    n get pods --selector "app.kubernetes.io/component=$1" --field-selector status.phase=Running \
        -o 'jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}'
}

shoal_pods() {
    for component in edge session worker-demo; do pods_of "$component"; done
}

# all_replaced NAME OLD: false, and a failed check, if one of the pods called OLD is still there
all_replaced() {
    local left
    left=$(comm -12 <(sort <<<"$2") <(shoal_pods | sort) | paste -s -d ' ')
    [[ -z $left ]] && return
    fail "$1" "these pods were not replaced: $left"
    return 1
}

check_upgrade() {
    local name="upgrade under load" old began
    old=$(shoal_pods)
    start_load "$name" "$UPGRADE_SECONDS" || return 0
    began=$SECONDS
    must helm-upgrade h upgrade "$RELEASE" "$CHART" -f "$WORK/values.yaml" --set "image.tag=${NEXT_IMAGE#*:}" \
        --set-string defaults.podAnnotations.trial=upgraded --wait --timeout 80s || { end_load "$name" unnoticed; return 0; }
    # Ready are the new ones; the old ones may still be leaving.
    must old-pods-gone wait_gone 60 "$old" || true
    local took=$((SECONDS - began))
    all_replaced "$name" "$old" || true
    still_loaded "$name" || true
    end_load "$name" unnoticed "6 pods replaced in $took s" || true
}

# wait_gone SECONDS PODS: until none of them exists
wait_gone() {
    local until=$((SECONDS + $1)) left
    while true; do
        left=$(comm -12 <(sort <<<"$2") <(n get pods -o name | cut -d / -f 2 | sort))
        [[ -n $left ]] || return 0
        ((SECONDS < until)) || { echo "still there after $1 s: $left" && return 1; }
        sleep 1
    done
}

check_rollback() {
    local name="rollback under load" old began
    old=$(shoal_pods)
    start_load "$name" "$UPGRADE_SECONDS" || return 0
    began=$SECONDS
    must helm-rollback h rollback "$RELEASE" 1 --wait --timeout 80s || { end_load "$name" unnoticed; return 0; }
    must old-pods-gone-again wait_gone 60 "$old" || true
    local took=$((SECONDS - began))
    all_replaced "$name" "$old" || true
    still_loaded "$name" || true
    end_load "$name" unnoticed "back to the first revision in $took s" || true
}
