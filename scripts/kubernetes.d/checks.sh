# shellcheck shell=bash
# All checks of the chart, in order.

NAMESPACE=shoal
RELEASE=trial
CHART=$ROOT/helm/shoal

# n ARGUMENT…: kubectl in the chart's namespace
n() { k --namespace "$NAMESPACE" "$@"; }

# h ARGUMENT…: helm in the chart's namespace
h() {
    HELM_CACHE_HOME=$WORK/helm HELM_CONFIG_HOME=$WORK/helm HELM_DATA_HOME=$WORK/helm \
        in_net node1 timeout -k 5 "${HELM_SECONDS:-400}" "${HELM:-helm}" --kubeconfig "$KEYS/admin.kubeconfig" \
        --namespace "$NAMESPACE" "$@"
}

# values: the trial's values, as an operator would write them
values() {
    cat <<YAML
image: {repository: ${SHOAL_IMAGE%:*}, tag: ${SHOAL_IMAGE#*:}, pullPolicy: Never}
redis: {bundled: {enabled: true, image: {repository: ${REDIS_IMAGE%:*}, tag: ${REDIS_IMAGE#*:}, pullPolicy: Never}}}
config: {auth: {allow_anonymous: true}}
pools: {demo: {backend: demo}}
test: {tool: echo, arguments: {text: trial}}
YAML
}

# The checks of the release under load, in order.
UNDER_LOAD="helm_test server_side_apply pools controller scale upgrade same_authority lost budgets autoscaling rollback rollouts uninstall"

under_load() {
    local check
    check_install || return 0
    for check in $UNDER_LOAD; do
        # Failures are counted; the next check runs anyway.
        "check_$check" || true
    done
}

# run_checks NAME…: the checks of --only
run_checks() {
    local name
    for name in "$@"; do
        heading "$name"
        case $name in
            load) under_load ;;
            *) "check_$name" || true ;;
        esac
    done
}
