# shellcheck shell=bash
# Clients outside the cluster: sessions with open streams and calls, which verify every answer.

SESSIONS=40
MODERN=10
LOAD=

# service_address: the address of the clients' Service
service_address() { n get service --selector app.kubernetes.io/component=edge -o 'jsonpath={.items[0].spec.clusterIP}'; }

# start_load NAME SECONDS [MODERN]: in the background
start_load() {
    local name=$1 seconds=$2 modern=${3:-$MODERN}
    in_net client timeout -k 5 $((seconds + 90)) "$ROLL" --url "http://$(service_address)/mcp" --seconds "$seconds" \
        --sessions "$SESSIONS" --modern "$modern" --thinking-ms 2000 --longest-ms 8000 \
        --json "$LOGS/$name.json" >"$LOGS/$name.txt" 2>&1 </dev/null &
    LOAD=$!
    # Waits until all clients are busy.
    sleep 5
    kill -0 "$LOAD" 2>/dev/null && return
    fail "$name" "$(tail -n 1 "$LOGS/$name.txt")"
    return 1
}

# still_loaded NAME: fails the check if the clients ended before the test did
still_loaded() {
    kill -0 "$LOAD" 2>/dev/null && return
    fail "$1" "the clients had finished before: raise its seconds"
    return 1
}

# drop_load: waits for the clients without counting them, after a failed test
drop_load() {
    wait "$LOAD" || true
    LOAD=
}

# end_load NAME unnoticed|resumed [REMARK]: waits for the clients, and counts their result as a check
end_load() {
    local name=$1 how=$2 remark=${3:-}
    wait "$LOAD" || true
    LOAD=
    if "$PARTS/figures" "$LOGS/$name.json" "$how" >"$LOGS/$name-figures.txt" 2>&1; then
        pass "$name" "${remark:+$remark; }$(head -n 1 "$LOGS/$name-figures.txt")"
        return
    fi
    fail "$name" "${remark:+$remark; }see below"
    sed 's/^/      | /' "$LOGS/$name-figures.txt"
    return 1
}
