# shellcheck shell=bash
# What every run begins and ends with: its environment, and a directory for what it leaves.

# Logs are read as they are.
export CARGO_TERM_COLOR=never NO_COLOR=1 TERM=dumb

# What incremental builds keep would double the disk that a run takes, and a run builds once.
[[ ${CI:-} != true ]] || export CARGO_INCREMENTAL=0

# Nothing that the environment says about Shoal is meant for the servers of a test.
for variable in "${!SHOAL_@}"; do unset "$variable"; done

# begin_run: makes the directory WORK, and has everything ended that the run has started
begin_run() {
    WORK=$(mktemp -d "${TMPDIR:-/tmp}/shoal-test.XXXXXX")
    trap finish EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

finish() {
    [[ -z $RUNNING ]] || kill "$RUNNING" 2>/dev/null || true
    end_begun
    stop_servers quietly
    if [[ -n ${TEST_KEEP_LOGS:-} ]]; then
        mkdir -p "$TEST_KEEP_LOGS"
        cp -r "$WORK/." "$TEST_KEEP_LOGS/"
    fi
    rm -rf "$WORK"
}
