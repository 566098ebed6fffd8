# shellcheck shell=bash
# Helm 4 and `kubectl apply --server-side` write the same release in turn.

# render FILE [OPTION…]: the chart's objects, without its tests
render() { h template "$RELEASE" "$CHART" -f "$WORK/applied.yaml" --no-hooks "${@:2}" >"$1"; }

apply_render() { n apply --server-side --field-manager "$2" -f "$1"; }

# same_when_applied: whether applying the render now would change nothing
same_when_applied() { n diff --server-side --field-manager "$2" -f "$1"; }

check_apply() { with_place apply apply_in_turn; }

apply_in_turn() {
    local name="server-side apply in turn" HELM=$HELM4 before round
    bundled >"$WORK/applied.yaml"
    must helm4-install h install "$RELEASE" "$CHART" -f "$WORK/applied.yaml" --server-side=true --wait --timeout 180s || return 1
    before=$(objects_as_they_are)
    AUTHORITY='' check_certificates "$name: certificates" || return 1
    for round in 1 2; do
        HELM=helm must "render-$round" render "$WORK/render-$round.yaml" || return 1
        must "apply-$round" apply_render "$WORK/render-$round.yaml" trial || return 1
        must "diff-$round" same_when_applied "$WORK/render-$round.yaml" trial || return 1
        must "helm4-upgrade-$round" h upgrade "$RELEASE" "$CHART" -f "$WORK/applied.yaml" --wait --timeout 180s || return 1
    done
    cmp -s "$WORK/render-1.yaml" "$WORK/render-2.yaml" || fail "$name" "two renders differ"
    same_objects "$name" "$before" || return 1
    # New and old processes run together. They would refuse one another if the authority had been replaced.
    must apply-restart n rollout restart "deployment/$RELEASE-shoal-edge" "deployment/$RELEASE-shoal-worker-demo" || return 1
    must apply-restarted rolled_out || return 1
    wait_for 30 "$name: calls" answers || return 1
    must apply-trust no_distrust || return 1
    pass "$name" "$(grep -c '^kind:' "$WORK/render-1.yaml") objects, two rounds, none changed; new pods trust old ones"
}
