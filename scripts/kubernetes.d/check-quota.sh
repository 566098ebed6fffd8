# shellcheck shell=bash
# A namespace whose quota counts all requests and limits.

quota() {
    cat <<YAML
apiVersion: v1
kind: ResourceQuota
metadata: {name: all}
spec:
  hard:
    requests.cpu: "3"
    requests.memory: 3Gi
    requests.ephemeral-storage: 2Gi
    limits.cpu: "12"
    limits.memory: 8Gi
    limits.ephemeral-storage: 40Gi
YAML
}

# quota_values: CPU limits as README.md suggests, and a pool with its own image, whose pods have an init container
quota_values() {
    bundled
    cat <<YAML
defaults: {resources: {limits: {cpu: "1"}}, initResources: {limits: {cpu: "1"}}}
tls: {job: {resources: {limits: {cpu: "1"}}}}
YAML
}

quota_install() {
    h install "$RELEASE" "$CHART" -f "$WORK/quota.yaml" --set test.resources.limits.cpu=1 --set redis.bundled.resources.limits.cpu=1 \
        --set pools.own.image.repository="${SHOAL_IMAGE%:*}" --set pools.own.image.tag="${SHOAL_IMAGE#*:}" \
        --set pools.own.backend.stdio.command=/usr/local/bin/shoal --set 'pools.own.backend.stdio.args={stdio,--demo}' \
        --set pools.own.settings.prefix=own_ --wait --timeout 180s
}

# unlimited: a restricted pod without requests
unlimited() {
    cat <<YAML
apiVersion: v1
kind: Pod
metadata: {name: unlimited}
spec:
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
    - {name: pause, image: $PAUSE_IMAGE, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}
YAML
}

# refused_by_quota: whether the quota is active and refuses such a pod
refused_by_quota() {
    local said
    said=$(n apply --dry-run=server -f "$WORK/unlimited.yaml" 2>&1) && echo "a pod without resources was taken" && return 1
    [[ $said == *"must specify"* ]] || { echo "$said" && return 1; }
}

check_quota() { with_place quota under_quota; }

under_quota() {
    local name="ResourceQuota and restricted"
    quota >"$WORK/quota-object.yaml"
    quota_values >"$WORK/quota.yaml"
    unlimited >"$WORK/unlimited.yaml"
    must quota-object n apply -f "$WORK/quota-object.yaml" || return 1
    wait_for 30 "$name: quota" refused_by_quota || return 1
    if ! must quota-install quota_install; then
        n get events --field-selector type=Warning -o 'jsonpath={range .items[*]}{.message}{"\n"}{end}' | sort -u | head -n 5
        return 1
    fi
    must quota-test h test "$RELEASE" --logs --timeout 120s || return 1
    # A rollout needs room for one more pod of each component.
    must quota-upgrade quota_upgrade || return 1
    wait_for 30 "$name: calls" answers || return 1
    pass "$name" "$(n get resourcequota all -o 'go-template={{range $what, $used := .status.used}}{{$what}} {{$used}}, {{end}}')all pods run and are replaced"
}

quota_upgrade() { h upgrade "$RELEASE" "$CHART" --reuse-values --set-string defaults.podAnnotations.trial=upgraded --wait --timeout 180s; }
