# shellcheck shell=bash
# Waits with timeouts.

# wait_for SECONDS WHAT COMMAND…: until the command succeeds
wait_for() {
    local seconds=$1 what=$2 until=$((SECONDS + $1))
    shift 2
    until "$@" >"$LOGS/waiting.log" 2>&1; do
        if ((SECONDS >= until)); then
            fail "$what" "not done within $seconds s: $(tail -n 1 "$LOGS/waiting.log")"
            return 1
        fi
        sleep 0.3
    done
}

# try NAME COMMAND…: logs the output under NAME; for functions with their own timeout
try() {
    local log
    log=$(log_of "$1")
    "${@:2}" >"$log" 2>&1 </dev/null
}

# must NAME COMMAND…: the same, and fails the check if it fails
must() {
    local status=0
    try "$@" || status=$?
    [[ $status -ne 0 ]] || return 0
    fail "$1" "exit status $status"
    show_log "$1"
    return 1
}

# keep_logs: keeps pods' logs until the trial ends, because nodes delete them with the pods
keep_logs() {
    local log
    while sleep 1; do
        for log in "$LOGS"/pods-*/*/*/*.log; do
            # A second link to the file: POD_CONTAINER_RESTART.log
            ln -f "$log" "$LOGS/pods/$(cut -d _ -f 2 <<<"${log#*/pods-node?/}")_$(basename "$(dirname "$log")")_$(basename "$log")" 2>/dev/null || true
        done
    done
}
