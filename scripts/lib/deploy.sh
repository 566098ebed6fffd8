# shellcheck shell=bash
# Runs what `deploy/` contains: the image, the Compose file with its files, the systemd units.

# Compose's own loader, as a command.
COMPOSE_GO=github.com/compose-spec/compose-go/v2/cmd@v2.16.2
COMPOSE_INSTALL=(env GOBIN="$TOOLS/compose-go" go install "$COMPOSE_GO")
# Of 10; `systemd-analyze security` rates what a unit leaves open.
SYSTEMD_EXPOSURE=2.0

suite_deploy() {
    once build_shoal || return 0
    beside deploy
}

deploy() {
    heading "deploy"
    deploy_features
    deploy_image
    deploy_compose
    deploy_systemd
    deploy_release
}

# build_static: sets STATIC, a static binary; false if there is none
build_static() {
    STATIC=$WORK/static/shoal
    if [[ -n ${TEST_SHOAL_BIN:-} ]]; then
        is_static "$TEST_SHOAL_BIN" || return 1
        STATIC=$(realpath "$TEST_SHOAL_BIN")
        return
    fi
    [[ $(uname -s) == Linux ]] || return 1
    static_build check
}

# static_build VERB…: `begin_when_built NAME` or `check`. Quick to build: not `dist`, and with the features of the README's first command.
static_build() {
    "$@" "build: static binary" 3600 env SHOAL_PROFILE=dev SHOAL_FEATURES= "$ROOT/deploy/build-static" "$WORK/static/shoal"
}

# is_static FILE: whether it runs without a loader
is_static() { ! LC_ALL=C ldd "$1" 2>/dev/null | grep -q '=>'; }

deploy_features() {
    local name="deploy: a shoal without the controller says how to build one with it"
    if [[ -n ${TEST_SHOAL_BIN:-} ]] || ! once build_static; then
        skip "$name" "needs a static binary built here"
        return
    fi
    # shellcheck disable=SC2016 # the shell that is started expands it
    check "$name" 30 bash -c '! said=$("$0" controller 2>&1) && echo "$said" && grep -q -- "--features controller" <<<"$said"' "$STATIC" || true
}

deploy_image() {
    local name="deploy: image" archive=$WORK/shoal-image.tar
    if ! have python; then
        skip "$name" "$(needs python)"
        return
    fi
    if [[ $(id -u) -ne 0 ]] && ! unshare --user --root / true 2>/dev/null; then
        skip "$name" "needs root, or user namespaces, to start what is in the image"
        return
    fi
    if ! once build_static; then
        skip "$name" "needs a static binary: deploy/build-static"
        return
    fi
    check "$name is packed, starts without anything of this machine, and answers" 300 \
        "$ROOT/deploy/image" --binary "$STATIC" --output "$archive" || return 0
    sed -n 's/^/      /p' "$(log_of "$name is packed, starts without anything of this machine, and answers")"
    check "$name: the same bytes again" 300 \
        "$ROOT/deploy/image" --binary "$STATIC" --output "$archive.again" --no-start || return 0
    check "$name: is the same" 60 cmp "$archive" "$archive.again" || true
}

deploy_compose() {
    local name="deploy: compose" model=$WORK/compose.json
    if ! have go || ! have python; then
        skip "$name" "$(needs go); $(needs python)"
        return
    fi
    if [[ ! -x $TOOLS/compose-go/cmd ]] && ! install_by install-compose-go "${COMPOSE_INSTALL[@]}"; then
        skip "$name" "needs the loader of Compose: go install $COMPOSE_GO"
        return
    fi
    # A copy, because users create this secret, and the checkout has none.
    cp -r "$ROOT/deploy" "$WORK/deploy"
    head -c 32 /dev/urandom | base64 >"$WORK/deploy/compose/state-key"
    check "$name: follows the specification" 60 bash -c "cd '$WORK/deploy' &&
        '$TOOLS/compose-go/cmd' -format json compose.yaml >'$model'" || return 0
    if ! command -v haproxy >/dev/null && ! apt_install haproxy; then
        skip "$name: the balancer's configuration" "needs haproxy: apt-get install haproxy"
        return
    fi
    check "$name: the balancer's configuration" 60 haproxy -c -f "$ROOT/deploy/compose/haproxy.cfg" || true
    deploy_services "$name: services" "$model"
}

# deploy_services NAME MODEL: all services, each in its own network namespace
deploy_services() {
    local name=$1 model=$2 shoal
    if [[ $(id -u) -ne 0 ]] || ! unshare --net --mount true 2>/dev/null; then
        skip "$name" "needs root, to give each a network of its own"
        return
    fi
    if ! command -v ip >/dev/null && ! apt_install iproute2; then
        skip "$name" "needs ip: apt-get install iproute2"
        return
    fi
    if ! have redis; then
        skip "$name" "$(needs redis)"
        return
    fi
    once build_shoal || return 0
    shoal=$SHOAL
    mkdir -p "$WORK/services"
    chmod 0755 "$WORK"
    check "$name" 300 unshare --net --mount python3 -B "$ROOT/scripts/deploy/services.py" \
        "$model" "$shoal" "$WORK/services" || true
}

deploy_systemd() {
    local name="deploy: systemd" shoal file root=$WORK/systemd
    if ! command -v systemd-analyze >/dev/null && ! apt_install systemd; then
        skip "$name" "needs systemd-analyze: apt-get install systemd"
        return
    fi
    once build_shoal || return 0
    shoal=$SHOAL
    # The unit names the installed program, which is elsewhere here.
    mkdir -p "$root"
    sed "s|/usr/local/bin/shoal|$shoal|" "$ROOT/deploy/systemd/shoal@.service" >"$root/shoal@.service"
    check "$name: the unit can be used" 60 env SYSTEMD_UNIT_PATH="$root:" systemd-analyze verify --man=no \
        --recursive-errors=no "$root/shoal@.service" || true
    check "$name: the unit leaves little open" 60 systemd-analyze security --no-pager --offline=yes \
        --threshold="${SYSTEMD_EXPOSURE/./}" "$root/shoal@.service" || true
    echo "0123456789abcdef0123456789abcdef" >"$root/state-key"
    for file in "$ROOT"/deploy/systemd/*.env; do
        check "$name: settings of $(basename "$file" .env)" 30 bash -c "set -a; source '$file'
            export SHOAL_CONFIG='$ROOT/deploy/systemd/shoal.toml'
            export SHOAL_STATE_KEYS__KEYS='[{ file = \"$root/state-key\" }]'
            '$shoal' config check" || true
    done
}

deploy_release() {
    local name="deploy: release"
    if ! have python || ! have go; then
        skip "$name" "$(needs python); $(needs go)"
        return
    fi
    if ! python3 -c 'import tomllib' 2>/dev/null; then
        skip "$name" "needs Python 3.11 or later, which reads TOML: apt-get install python3"
        return
    fi
    if ! have helm3; then
        skip "$name" "needs Helm 3, which npm fetches: $(needs node)"
        return
    fi
    if [[ $(id -u) -ne 0 ]] && ! unshare --user --map-root-user --mount true 2>/dev/null; then
        skip "$name" "needs root, or user namespaces, to start the image"
        return
    fi
    if ! once build_static; then
        skip "$name" "needs a static binary: deploy/build-static"
        return
    fi
    check "$name: every part is made, twice alike, and tried from its folder" 1800 env HELM="$HELM3" \
        "$ROOT/scripts/release" --dry-run --binary "$STATIC" --output "$WORK/release" || return 0
    sed -n 's/^\(made\|again\|tried\) /      &/p' "$(log_of "$name: every part is made, twice alike, and tried from its folder")"
    check "$name: its checksums hold" 60 bash -c "cd '$WORK/release' && sha256sum --quiet --check SHA256SUMS" || true
}
