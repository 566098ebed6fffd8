# shellcheck shell=bash
# A new user installs the chart in five ways, and uninstalls it.

check_ways() {
    local way
    for way in helm3 helm4 kubectl subchart argo; do
        RELEASE=shoal with_place "way-$way" by_way "$way"
    done
}

# flags_of_readme: the trial's flags in the chart's README, with this machine's images
flags_of_readme() {
    printf '%s\n' --set "image.repository=${SHOAL_IMAGE%:*}" --set redis.bundled.enabled=true --set pools.demo.backend=demo \
        --set config.auth.allow_anonymous=true \
        --set "image.tag=${SHOAL_IMAGE#*:}" --set "redis.bundled.image.repository=${REDIS_IMAGE%:*}" \
        --set "redis.bundled.image.tag=${REDIS_IMAGE#*:}"
}

by_way() {
    local began=$SECONDS flags
    mapfile -t flags < <(flags_of_readme)
    must "way-$1" "by_$1" || return 1
    # Installations without `helm --wait` wait with kubectl.
    must "way-$1-ready" rolled_out || return 1
    wait_for 30 "installed by $1: calls" answers || return 1
    must "way-$1-trust" no_distrust || return 1
    local ready=$((SECONDS - began)) again=''
    if declare -F "again_by_$1" >/dev/null; then
        "again_by_$1" || return 1
        again=", $AGAIN"
    fi
    must "way-$1-gone" "gone_by_$1" || return 1
    wait_for 60 "uninstalled by $1" nothing_left || return 1
    pass "installed by $1" "answers after $ready s$again, nothing left"
}

# made_secrets: how many Secrets the Job has filled
made_secrets() {
    n get secrets --selector app.kubernetes.io/component=certificates -o 'go-template={{range .items}}{{if .data}}x{{end}}{{end}}' | wc -c
}

# gone_by_helm: runs Helm's test, then uninstalls the release
gone_by_helm() {
    h test "$RELEASE" --logs --timeout 120s && h uninstall "$RELEASE" --wait --timeout 120s &&
        n delete pods --selector app.kubernetes.io/component=test
}

by_helm3() { h install "$RELEASE" "$CHART" --wait "${flags[@]}"; }
gone_by_helm3() { gone_by_helm; }

by_helm4() { HELM=$HELM4 by_helm3; }
gone_by_helm4() { HELM=$HELM4 gone_by_helm; }

by_kubectl() { h template "$RELEASE" "$CHART" --no-hooks "${flags[@]}" >"$WORK/way.yaml" && n apply -f "$WORK/way.yaml"; }
gone_by_kubectl() { n delete -f "$WORK/way.yaml" --timeout 50s; }

# Applies the same text again, as a user does who has changed nothing.
again_by_kubectl() {
    local before
    before=$(objects_as_they_are)
    must way-kubectl-again n apply -f "$WORK/way.yaml" || return 1
    same_objects "installed by kubectl" "$before" || return 1
    AGAIN="a second apply changes nothing"
}

# parent: a chart that depends on Shoal's
parent() {
    mkdir -p "$WORK/parent/charts" && cp -r "$CHART" "$WORK/parent/charts/shoal" &&
        cat >"$WORK/parent/Chart.yaml" <<'YAML' && cat >"$WORK/parent/values.yaml" <<YAML
apiVersion: v2
name: platform
version: 1.0.0
dependencies: [{name: shoal, version: "*.*.*", condition: shoal.enabled}]
YAML
global: {imageRegistry: localhost}
shoal:
  enabled: true
  image: {repository: $(basename "${SHOAL_IMAGE%:*}"), tag: ${SHOAL_IMAGE#*:}}
  redis: {bundled: {enabled: true, image: {repository: $(basename "${REDIS_IMAGE%:*}"), tag: ${REDIS_IMAGE#*:}}}}
  pools: {demo: {backend: demo}}
  config: {auth: {allow_anonymous: true}}
YAML
}

by_subchart() { parent && h install "$RELEASE" "$WORK/parent" --wait; }
gone_by_subchart() { gone_by_helm; }

# synchronised OPTION…: like Argo CD: renders, applies on the server for one manager, and prunes
synchronised() {
    h template "$RELEASE" "$CHART" --no-hooks "${flags[@]}" "$@" >"$WORK/way.yaml" &&
        KUBECTL_APPLYSET=true n apply --server-side --force-conflicts --field-manager argocd-controller --prune --applyset shoal-set \
            -f "$WORK/way.yaml"
}

by_argo() { synchronised --set pools.late.backend=demo --set pools.late.settings.prefix=late_ && rolled_out && late_secret; }

late_secret() { [[ $(made_secrets) -eq 4 ]] || { echo "$(made_secrets) Secrets are filled, not 4" && return 1; }; }

# Synchronises again, then without one of its pools.
again_by_argo() {
    local before count
    before=$(objects_as_they_are)
    must way-argo-again by_argo || return 1
    same_objects "installed by argo" "$before" || return 1
    must way-argo-pruned synchronised || return 1
    count=$(grep -c pruned "$(log_of way-argo-pruned)")
    must way-argo-rolled rolled_out || return 1
    if n get deployment shoal-worker-late >/dev/null 2>&1 || [[ $count -lt 1 || $(made_secrets) -ne 3 ]]; then
        fail "installed by argo" "the pool that is named no more is still there, or more than it has been pruned"
        return 1
    fi
    wait_for 30 "installed by argo: calls after pruning" answers || return 1
    AGAIN="a second sync changes nothing, $count objects pruned with a pool"
}

gone_by_argo() { n delete -f "$WORK/way.yaml" --timeout 50s && n delete secret shoal-set; }
