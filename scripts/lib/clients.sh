# shellcheck shell=bash
# The interop programs: how to prepare and run each.

# Longer than any run; each check in a program has its own timeout.
CLIENT_SECONDS=300

language_of() {
    case $1 in
        python | go) echo "$1" ;;
        fastmcp | odd | odd-clients | lists | openapi | parsers) echo python ;;
        java-* | spring-ai-* | kotlin) echo java ;;
        rmcp) echo rust ;;
        *) echo node ;;
    esac
}

# prepare CLIENT: installs or builds it, or shows why that failed
prepare() {
    install_client "$1" && return 0
    show_last_log
    return 1
}

install_client() {
    case $1 in
        python | fastmcp) python_install "$1" ;;
        lists) python_install python ;;
        openapi) python_install fastmcp ;;
        odd) python_install python && npm_install "$INTEROP/typescript" ;;
        odd-clients)
            install_client odd && python_install fastmcp && npm_install "$INTEROP/servers" && npm_install "$INTEROP/typescript-v1"
            ;;
        go)
            install_by build-go go -C "$INTEROP/go" build -o "$TOOLS/interop-go" . &&
                install_by build-asking-go go -C "$INTEROP/go" build -o "$TOOLS/asking-go" ./asking
            ;;
        parsers) ;; # it needs nothing but Python
        rmcp) rmcp_build attempt ;;
        java-* | spring-ai-* | kotlin) once jvm_build "$(jvm_program_of "$1")" ;;
        conformance-client) npm_install "$INTEROP/conformance" ;;
        *) npm_install "$INTEROP/$1" ;;
    esac
}

# rmcp_build VERB: `begin` or `attempt`
rmcp_build() {
    "$1" build-rmcp 3600 cargo build --locked --target-dir "$TOOLS/rmcp" --manifest-path "$INTEROP/rmcp/Cargo.toml"
}

# command_of CLIENT: sets COMMAND to the words that run it
command_of() {
    case $1 in
        python) COMMAND=("$TOOLS/python/bin/python" -B "$INTEROP/python/client.py") ;;
        odd) COMMAND=("$TOOLS/python/bin/python" -B "$INTEROP/odd/oracle.py") ;;
        parsers) COMMAND=(python3 -B "$INTEROP/parsers/check.py") ;;
        lists) COMMAND=("$TOOLS/python/bin/python" -B "$INTEROP/lists/run.py") ;;
        openapi) COMMAND=("$TOOLS/fastmcp/bin/python" -B "$INTEROP/openapi/compare.py") ;;
        odd-clients) COMMAND=("$TOOLS/python/bin/python" -B "$INTEROP/odd/clients.py") ;;
        go) COMMAND=("$TOOLS/interop-go") ;;
        rmcp) COMMAND=("$TOOLS/rmcp/debug/shoal-interop-rmcp") ;;
        java-* | spring-ai-* | kotlin) jvm_command_of "$1" ;;
        console) COMMAND=(node "$INTEROP/console/run.js") ;;
        conformance) COMMAND=(node "$INTEROP/conformance/run.js") ;;
        conformance-client) COMMAND=(node "$INTEROP/conformance/run-client.js") ;;
        *) COMMAND=(node "$INTEROP/$1/client.js") ;;
    esac
}

# asking_server_of SDK: sets COMMAND to the words that run its asking server
asking_server_of() {
    case $1 in
        python) COMMAND=("$TOOLS/python/bin/python" -B "$INTEROP/python/asking.py") ;;
        fastmcp) COMMAND=("$TOOLS/fastmcp/bin/python" -B "$INTEROP/fastmcp/asking.py") ;;
        servers) COMMAND=(node "$INTEROP/servers/asking.js") ;;
        everything) COMMAND=(node "$INTEROP/servers/node_modules/@modelcontextprotocol/server-everything/dist/index.js" stdio) ;;
        go) COMMAND=("$TOOLS/asking-go") ;;
        rmcp) COMMAND=("$TOOLS/rmcp/debug/asking") ;;
    esac
}

# ready NAME CLIENT: whether the client can be used; if not, counts the check NAME
ready() {
    local name=$1 client=$2 language
    language=$(language_of "$client")
    if ! have "$language"; then
        skip "$name" "$(needs "$language")"
    elif ! once prepare "$client"; then
        fail "$name" "$client could not be installed or built"
    else
        return 0
    fi
    return 1
}

# client NAME CLIENT ARGUMENT…: one run of the program as one check. A failed run is repeated once. If the repetition passes, the failure
# depended on the machine's load; it is reported with its output, so that its cause can be fixed.
client() {
    local name=$1 client=$2 logged status=0 began=$SECONDS
    shift 2
    ready "$name" "$client" || return 0
    command_of "$client"
    logged=$(server_log_size)
    attempt "$name" "$CLIENT_SECONDS" "${COMMAND[@]}" "$@" || status=$?
    if [[ $status -eq 0 ]]; then
        pass "$name" "$(tally "$name")$((SECONDS - began)) s"
        return
    fi
    printf 'again %s: %s\n' "$name" "$(reason "$name" "$status" "$CLIENT_SECONDS")"
    show_log "$name"
    check "$name" "$CLIENT_SECONDS" "${COMMAND[@]}" "$@" || show_server_log "$logged"
}
