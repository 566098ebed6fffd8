# shellcheck shell=bash
# Every pod is replaced under load: by an upgrade, a rollback, evictions.

UPGRADE_SECONDS=90

pods_of() {
    n get pods --selector "app.kubernetes.io/component=$1" --field-selector status.phase=Running \
        -o 'jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}'
}

shoal_pods() {
    for component in edge session worker-demo; do pods_of "$component"; done
}

# all_replaced NAME OLD: fails the check if one of the pods OLD still exists
all_replaced() {
    local left
    left=$(comm -12 <(sort <<<"$2") <(shoal_pods | sort) | paste -s -d ' ')
    [[ -z $left ]] && return
    fail "$1" "these pods were not replaced: $left"
    return 1
}

# roll_out NAME COMMAND…: Helm replaces every pod under load, and no client may notice
roll_out() {
    local name=$1 old began took
    old=$(shoal_pods)
    start_load "$name" "$UPGRADE_SECONDS" || return 0
    began=$SECONDS
    must "${name// /-}" "${@:2}" || { drop_load; return 0; }
    # The new pods are ready; old ones may still be ending.
    must "${name// /-}-old-pods-gone" wait_gone 60 "$old" || true
    took=$((SECONDS - began))
    all_replaced "$name" "$old" || true
    still_loaded "$name" || true
    end_load "$name" unnoticed "6 pods replaced in $took s" || true
}

# upgrade MARK: to the next image; MARK makes the pods differ
upgrade() {
    h upgrade "$RELEASE" "$CHART" -f "$WORK/values.yaml" --set "image.tag=${NEXT_IMAGE#*:}" \
        --set-string "defaults.podAnnotations.trial=$1" --wait --timeout 80s
}

# roll_back [REVISION]: to the last revision by default
roll_back() { h rollback "$RELEASE" "$@" --wait --timeout 80s; }

check_upgrade() { roll_out "upgrade under load" upgrade upgraded; }

check_same_authority() { check_certificates "certificates after the upgrade"; }

check_rollback() { roll_out "rollback under load" roll_back 1; }

# Upgrades and rolls back KUBE_ROLLOUTS times, which shows even rare races.
check_rollouts() {
    local count
    for ((count = 1; count <= ${KUBE_ROLLOUTS:-0}; count++)); do
        if ((count % 2)); then
            roll_out "rollout $count upgrade" upgrade "upgraded-$count"
        else
            roll_out "rollout $count rollback" roll_back
        fi
    done
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
