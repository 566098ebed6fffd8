# shellcheck shell=bash
# Runs parts of suites beside each other, and reports them in the order in which they were begun.

# Parts spend most of their time waiting, so this number does not depend on the processors.
PARTS_AT_ONCE=5
# The parts whose results were not collected: PROCESS FILE FUNCTION [ARGUMENT…]. FILE.out has the output, and FILE.counts the counts and failures.
PARTS=()
BEGUN_PARTS=0
# A pipe with a character for each part that may begin.
TURNS=

# beside FUNCTION [ARGUMENT…]: begins to run the function in a copy of this shell, as soon as fewer than PARTS_AT_ONCE others run
beside() {
    local file=$WORK/part-$((BEGUN_PARTS += 1))
    if [[ -z $TURNS ]]; then
        mkfifo "$WORK/turns"
        exec {TURNS}<>"$WORK/turns"
        printf "%${PARTS_AT_ONCE}s" '' >&"$TURNS"
    fi
    part "$file" "$@" >"$file.out" 2>&1 </dev/null &
    PARTS+=("$! $file $*")
}

# part FILE FUNCTION [ARGUMENT…]: what beside runs
part() {
    local file=$1
    PARTS=()
    PASSED=0 FAILED=0 SKIPPED=0 FAILURES=()
    read -r -N 1 -u "$TURNS" TURN
    # Set now, because a trap would not interrupt the wait for a turn.
    trap 'end_started; printf "%s" "$TURN" >&"$TURNS"' EXIT
    trap 'exit 143' TERM
    "${@:2}"
    printf '%s\n' "$PASSED $FAILED $SKIPPED" "${FAILURES[@]}" >"$file.counts"
}

# collect: waits for all parts, prints their output and adds their counts
collect() {
    local part process file words passed failed skipped
    for part in "${PARTS[@]}"; do
        read -r process file words <<<"$part"
        wait "$process" || true
        cat "$file.out"
        if [[ ! -s $file.counts ]]; then
            fail "$words" "ended before its last check"
            continue
        fi
        {
            read -r passed failed skipped
            mapfile -t -O "${#FAILURES[@]}" FAILURES
        } <"$file.counts"
        PASSED=$((PASSED + passed))
        FAILED=$((FAILED + failed))
        SKIPPED=$((SKIPPED + skipped))
    done
    PARTS=()
}

# end_parts: ends the parts that run, and waits until each has stopped its servers
end_parts() {
    local part
    for part in "${PARTS[@]}"; do kill "${part%% *}" 2>/dev/null || true; done
    for part in "${PARTS[@]}"; do wait "${part%% *}" 2>/dev/null || true; done
}
