# shellcheck shell=bash
# Starts Shoal processes, waits until they are ready and stops them.

# The check that builds the programs of this workspace.
TOOLS_BUILD="build: shoal, cluster, load tool, programs by shoal-mcp"
START_SECONDS=30
STOP_SECONDS=15

SERVERS=()
# The URL of the last server, and its admin port.
URL=
ADMIN=
SERVER_LOG=
# The server behind a URL.
UPSTREAM=

# build_shoal: sets SHOAL; false if there is none
build_shoal() {
    if [[ -n ${TEST_SHOAL_BIN:-} ]]; then
        SHOAL=$(realpath "$TEST_SHOAL_BIN")
        return
    fi
    once build_tools || return 1
    SHOAL=$BUILT
}

# http_status URL: the status of a GET; empty without an answer
http_status() {
    local rest=${1#http://} host port line=
    host=${rest%%[:/]*}
    port=${rest#*:}
    port=${port%%/*}
    {
        exec 3<>"/dev/tcp/$host/$port"
        printf 'GET /%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' "${rest#*/}" "$host:$port" >&3
        read -r -t 5 line <&3
        timeout 5 cat <&3 >/dev/null
        exec 3>&-
    } 2>/dev/null || return 0
    cut -d ' ' -f 2 <<<"$line"
}

# start_server NAME ARGUMENT…: `shoal serve` on free ports, or at LISTEN; sets URL and ADMIN
start_server() {
    local name=$1 pid deadline
    shift
    SERVER_LOG=$(log_of "server-$name")
    : >"$SERVER_LOG.out"
    # In its own session, so that its children can be found and stopped with it.
    setsid "$SHOAL" serve --listen "${LISTEN:-127.0.0.1:0}" --admin 127.0.0.1:0 "$@" \
        >"$SERVER_LOG.out" 2>"$SERVER_LOG" </dev/null &
    pid=$!
    SERVERS+=("$pid:$name")
    deadline=$((SECONDS + START_SECONDS))
    while [[ $SECONDS -lt $deadline ]]; do
        URL=$(sed -n 's/^shoal: serving MCP on \(http[^ ]*\).*/\1/p' "$SERVER_LOG.out" | head -n 1)
        ADMIN=$(sed -n 's/^shoal: admin on \(http[^ ]*\).*/\1/p' "$SERVER_LOG.out" | head -n 1)
        if [[ -n $URL && -n $ADMIN && $(http_status "${ADMIN%/}/readyz") == 200 ]]; then
            pass "$name: starts"
            return 0
        fi
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    fail "$name: starts" "not ready within $START_SECONDS s"
    tail -n "$TAIL_LINES" "$SERVER_LOG.out" "$SERVER_LOG" | sed 's/^/      | /'
    stop_servers quietly
    return 1
}

# start_upstream NAME WORD…: a server whose port replaces @PORT@ in the words; sets UPSTREAM
start_upstream() {
    local name=$1 pid port deadline log
    shift
    port=$(free_port)
    log=$(log_of "upstream-$name")
    setsid "${@//@PORT@/$port}" >"$log" 2>&1 </dev/null &
    pid=$!
    SERVERS+=("$pid:$name")
    UPSTREAM=http://127.0.0.1:$port/mcp
    deadline=$((SECONDS + START_SECONDS))
    while [[ $SECONDS -lt $deadline ]]; do
        if [[ -n $(http_status "$UPSTREAM") ]]; then
            pass "$name: starts"
            return 0
        fi
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    fail "$name: starts" "not ready within $START_SECONDS s"
    tail -n "$TAIL_LINES" "$log" | sed 's/^/      | /'
    stop_servers quietly
    return 1
}

# start_worker NAME WORD…: a worker, which joins as soon as its node runs
start_worker() {
    local name=$1
    shift
    setsid "$@" >"$(log_of "worker-$name")" 2>&1 </dev/null &
    SERVERS+=("$!:$name")
}

# free_port: a port that is free at the moment, and that no other part of this run was given; concurrent Rust tests use ports above these
free_port() {
    local port
    mkdir -p "$WORK/ports"
    while :; do
        port=$((10000 + RANDOM % 2000))
        mkdir "$WORK/ports/$port" 2>/dev/null || continue
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    echo "$port"
}

# build_tools: sets BUILT, a shoal, CLUSTER, which starts clusters of SHOAL, LOADTEST, LEDGER and NIM, programs with shoal-mcp, and PREVIEW,
# which converts OpenAPI documents; false if they cannot be built. Uses the unit tests' builds, because no test measures time.
build_tools() {
    tools_build check || return 1
    local target
    target=$(cargo metadata --format-version 1 --no-deps --locked | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
    BUILT=$target/debug/shoal
    CLUSTER=$target/debug/cluster
    LOADTEST=$target/debug/loadtest
    LEDGER=$target/debug/examples/ledger
    NIM=$target/debug/examples/nim
    PREVIEW=$target/debug/examples/openapi_preview
}

# tools_build VERB: `begin` or `check`. For the whole workspace, so that the libraries have the features that the unit tests need, and are
# compiled once. Unit tests start the examples.
tools_build() {
    "$1" "$TOOLS_BUILD" 3600 \
        "${CARGO[@]}" build --locked --workspace --bin shoal --bin cluster --bin loadtest --examples
}

# start_cluster NAME ARGUMENT…: starts edges, session nodes and workers as processes, behind a proxy that sends each request to the next
# edge; sets URL
start_cluster() {
    local name=$1 pid deadline
    shift
    SERVER_LOG=$(log_of "server-$name")
    : >"$SERVER_LOG.out"
    TEST_SHOAL_BIN=$SHOAL setsid "$CLUSTER" --edges 3 --sessions 3 --workers 2 "$@" \
        >"$SERVER_LOG.out" 2>"$SERVER_LOG" </dev/null &
    pid=$!
    SERVERS+=("$pid:$name")
    deadline=$((SECONDS + START_SECONDS))
    while [[ $SECONDS -lt $deadline ]]; do
        URL=$(sed -n 's/^testkit: serving MCP on \(http[^ ]*\).*/\1/p' "$SERVER_LOG.out" | head -n 1)
        if [[ -n $URL ]]; then
            pass "$name: starts"
            return 0
        fi
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    fail "$name: starts" "not ready within $START_SECONDS s"
    tail -n "$TAIL_LINES" "$SERVER_LOG.out" "$SERVER_LOG" | sed 's/^/      | /'
    stop_servers quietly
    return 1
}

# server_log_size: the size of the running server's log
server_log_size() {
    if [[ ${#SERVERS[@]} -gt 0 ]]; then stat -c %s "$SERVER_LOG"; else echo 0; fi
}

# show_server_log SIZE: the running server's log after this size
show_server_log() {
    [[ $(server_log_size) -gt $1 ]] || return 0
    echo "      the server's log:"
    tail -c "+$(($1 + 1))" "$SERVER_LOG" | tail -n 15 | cut -c 1-400 | sed 's/^/      | /'
}

# stop_servers [quietly]: stops all servers; unless quietly, each one's stop is a check
stop_servers() {
    local server pid name deadline at
    # The last one first, because it may hold connections to the others.
    for ((at = ${#SERVERS[@]} - 1; at >= 0; at--)); do
        server=${SERVERS[at]}
        pid=${server%%:*}
        name=${server#*:}
        kill -TERM "$pid" 2>/dev/null || true
        deadline=$((SECONDS + STOP_SECONDS))
        while kill -0 "$pid" 2>/dev/null && [[ $SECONDS -lt $deadline ]]; do
            sleep 0.1
        done
        if kill -0 "$pid" 2>/dev/null; then
            [[ ${1:-} == quietly ]] || fail "$name: stops when told to" "still running after $STOP_SECONDS s"
        elif [[ -n $(session_members "$pid") ]]; then
            [[ ${1:-} == quietly ]] || fail "$name: stops when told to" "left processes behind"
        else
            [[ ${1:-} == quietly ]] || pass "$name: stops when told to"
        fi
        # shellcheck disable=SC2046 # one word for each process
        kill -KILL "$pid" $(session_members "$pid") 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    SERVERS=()
}

# session_members PID: the processes of the session that PID began
session_members() {
    local stat line
    for stat in /proc/[0-9]*/stat; do
        line=$(cat "$stat" 2>/dev/null) || continue
        # PID (NAME) STATE PARENT GROUP SESSION …; a name may contain spaces and brackets.
        # shellcheck disable=SC2086
        set -- "$1" ${line##*) }
        [[ $5 != "$1" || $2 == Z ]] || echo "${line%% *}"
    done
}
