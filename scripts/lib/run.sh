# shellcheck shell=bash
# The begin and end of every run: its environment, and a directory for its files.

# Keep logs free of colours.
export CARGO_TERM_COLOR=never NO_COLOR=1 TERM=dumb

# Incremental builds would double the disk usage, and a run builds once.
[[ ${CI:-} != true ]] || export CARGO_INCREMENTAL=0

# The words that run Cargo for this workspace.
CARGO=(cargo)

# Keep the environment's Shoal settings from the tests' servers.
for variable in "${!SHOAL_@}"; do unset "$variable"; done

# begin_run: makes the directory WORK, and ensures that everything started ends with the run
begin_run() {
    WORK=$(mktemp -d "${TMPDIR:-/tmp}/shoal-test.XXXXXX")
    trap finish EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

finish() {
    end_parts
    end_started
    if [[ -n ${TEST_KEEP_LOGS:-} ]]; then
        mkdir -p "$TEST_KEEP_LOGS"
        cp -r "$WORK/." "$TEST_KEEP_LOGS/"
    fi
    rm -rf "$WORK"
}

# end_started: ends everything that this shell, or this copy of it, has started
end_started() {
    [[ -z $RUNNING ]] || kill "$RUNNING" 2>/dev/null || true
    end_begun
    stop_servers quietly
}
