# shellcheck shell=bash
# Fetches what suites need before their parts run beside each other, because two parts cannot install the same thing.

# prepare_suites SUITE…
prepare_suites() {
    local suite
    heading "prepare"
    for suite in "$@"; do "prepare_$suite"; done
    true
}

prepare_unit() {
    once tests_need || true
    prepare_tools deny
}

prepare_peers() { :; }

prepare_conformance() { prepare_all conformance; }

prepare_interop() {
    prepare_demo
    prepare_all servers fastmcp odd odd-clients lists openapi
    prepare_workers
}

prepare_auth() { prepare_all authorization python typescript; }

prepare_stdio() { prepare_all python typescript typescript-v1; }

prepare_cluster() { prepare_demo; }

prepare_workers() {
    prepare_tools redis
    once python_worker || true
    once go_worker || true
    prepare_all python
}

prepare_composed() {
    prepare_workers
    prepare_all typescript servers fastmcp
    prepare_rmcp
}

prepare_docs() {
    prepare_tools redis curl openssl ip
    prepare_all python fastmcp
    once python_worker || true
}

prepare_examples() {
    prepare_tools redis helm3 curl openssl haproxy ip
    prepare_all fastmcp authorization
}

prepare_console() {
    prepare_tools chromium
    prepare_all console
}

prepare_deploy() {
    prepare_tools redis helm3 haproxy ip
    [[ -x $TOOLS/compose-go/cmd ]] || ! have go || begin_after "$TOOLS_BUILD" install-compose-go 3600 "${COMPOSE_INSTALL[@]}"
}

prepare_helm() {
    prepare_tools redis helm3
    [[ -x $TOOLS/helm4/helm ]] || ! have go || helm4_build begin_after "$TOOLS_BUILD"
}

# prepare_demo: the clients of `every_client`
prepare_demo() {
    prepare_tools redis
    ! have java || jvm_builds_begin
    prepare_rmcp
    prepare_all python typescript typescript-v1 inspector go
}

# prepare_rmcp: begins to build its programs, for which `prepare rmcp` waits
prepare_rmcp() {
    [[ -n ${BEGUN[build-rmcp]:-} || -n ${VERDICTS[prepare rmcp]:-} ]] || ! have rust || rmcp_build begin
}

# prepare_all CLIENT…: those that can be prepared here
prepare_all() {
    local client
    for client in "$@"; do
        ! have "$(language_of "$client")" || once prepare "$client" || true
    done
}

# prepare_tools TOOL…: those that can be had here
prepare_tools() {
    local tool
    for tool in "$@"; do
        if declare -F "find_$tool" >/dev/null; then
            have "$tool" || true
        else
            command -v "$tool" >/dev/null || apt_install "${tool/#ip/iproute2}" || true
        fi
    done
}
