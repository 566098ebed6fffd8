# shellcheck shell=bash
# Counts checks and reports their results.

PASSED=0
FAILED=0
SKIPPED=0
FAILURES=()
# Maximum lines of a failed check's output.
TAIL_LINES=40
# Timeout of one attempt to install.
TRY_SECONDS=300
# The process of the current attempt, and the log of the last one.
RUNNING=
LAST_LOG=
# Commands that run ahead of their attempt: name to the shell that began it, and the session's first process.
declare -A BEGUN
# The names of commands that run in turn.
IN_TURN=()

# heading NAME: with the time since the run began
heading() {
    printf '\n== %s (at %d:%02d)\n' "$1" $((SECONDS / 60)) $((SECONDS % 60))
}

# pass NAME [REMARK]
pass() {
    PASSED=$((PASSED + 1))
    printf 'ok    %s%s\n' "$1" "${2:+ ($2)}"
}

# fail NAME REASON
fail() {
    local reason=$2$(full_disks)
    FAILED=$((FAILED + 1))
    FAILURES+=("$1: $reason")
    printf 'FAIL  %s: %s\n' "$1" "$reason"
}

# full_disks: disks of this run with less than 256 MiB left, because failing steps seldom report that
full_disks() {
    local place
    for place in "$ROOT" "$WORK"; do
        [[ $(free_mebibytes "$place") -ge 256 ]] || printf ' (the disk of %s is full)' "$place"
    done
}

# free_mebibytes DIRECTORY
free_mebibytes() {
    echo $(($(df -Pk "$1" | awk 'NR == 2 { print $4 }') / 1024))
}

# skip NAME REASON
skip() {
    SKIPPED=$((SKIPPED + 1))
    printf 'skip  %s: %s\n' "$1" "$2"
}

# log_of NAME: the file with the output of the check NAME
log_of() {
    echo "$WORK/${1//[^A-Za-z0-9.]/-}.log"
}

# status_of NAME: the file with the status of the check NAME, if it was begun ahead; locked until the check ends
status_of() {
    echo "$(log_of "$1").status"
}

# attempt NAME SECONDS COMMAND…: runs the command with a timeout, with its output in the check's log; returns its status
attempt() {
    local name=$1 seconds=$2
    shift 2
    local status=0
    LAST_LOG=$(log_of "$name")
    # In the background, so that an interrupt reaches this script at once.
    if [[ -n ${BEGUN[$name]:-} ]]; then
        flock "$(status_of "$name")" true &
    else
        timeout -k 10 "$seconds" "$@" >"$(log_of "$name")" 2>&1 </dev/null &
    fi
    RUNNING=$!
    wait "$RUNNING" || status=$?
    RUNNING=
    if [[ -n ${BEGUN[$name]:-} ]]; then
        unset "BEGUN[$name]"
        if ! read -r status <"$(status_of "$name")"; then
            echo "it was killed before it had ended" >>"$(log_of "$name")"
            status=137
        fi
    fi
    return "$status"
}

# ahead NAME COMMAND…: begins a session that runs the command and writes its status. Bash would lose the status, and process ids may be
# reused. A lock shows that the session runs, because the kernel releases it with its holder.
ahead() {
    local name=$1
    {
        flock 9
        # shellcheck disable=SC2016 # the shell that is started expands it
        setsid bash -c '"$@" 9>&-; echo "$?" >&9' ahead "${@:2}" >"$(log_of "$name")" 2>&1 </dev/null &
        BEGUN[$name]="$BASHPID $!"
    } 9>"$(status_of "$name")"
}

# begin NAME SECONDS COMMAND…: runs the command ahead of its attempt, which then waits for it
begin() {
    ahead "$1" timeout -k 10 "${@:2}"
}

# begin_after EARLIER NAME SECONDS COMMAND…: the same, as soon as the check EARLIER, which was begun, has ended
begin_after() {
    # shellcheck disable=SC2016 # the shell that is started expands it
    ahead "$2" bash -c 'flock "$0" true; exec timeout -k 10 "$@"' "$(status_of "$1")" "${@:3}"
}

# begin_when_built EARLIER NAME SECONDS COMMAND…: the same, as soon as the `cargo test` EARLIER runs its first program or has ended. Cargo
# compiles for one command at a time.
begin_when_built() {
    # shellcheck disable=SC2016 # the shell that is started expands it
    ahead "$2" bash -c 'until [[ ! -e $0.status || -s $0.status ]] || grep -qE "^ +(Running|Doc-tests) " "$0"; do sleep 1; done
        exec timeout -k 10 "$@"' "$(log_of "$1")" "${@:3}"
}

# begin_in_turn TURNS NAME SECONDS COMMAND…: the same for TURNS concurrent commands: each waits for the one begun TURNS earlier.
begin_in_turn() {
    local turns=$1
    if [[ ${#IN_TURN[@]} -lt $turns ]]; then
        begin "${@:2}"
    else
        begin_after "${IN_TURN[-turns]}" "${@:2}"
    fi
    IN_TURN+=("$2")
}

# end_begun: ends what this shell began to run ahead, and all that it started
end_begun() {
    local name
    for name in "${!BEGUN[@]}"; do
        [[ ${BEGUN[$name]% *} == "$BASHPID" ]] || continue
        # An ended session has no processes, and its process id may be reused.
        ! flock -n "$(status_of "$name")" true || continue
        # shellcheck disable=SC2046 # one word for each process
        kill $(session_members "${BEGUN[$name]#* }") 2>/dev/null || true
    done
}

# install_by NAME COMMAND…: attempts the command up to three times, because registries sometimes hang or disconnect
install_by() {
    local name=$1 try
    shift
    for try in 1 2 3; do
        attempt "$name" "$TRY_SECONDS" "$@" && return 0
        [[ -s $(log_of "$name") ]] || echo "not done within $TRY_SECONDS s" >"$(log_of "$name")"
        [[ $try -eq 3 ]] || sleep "$((try * 5))"
    done
    return 1
}

# check NAME SECONDS COMMAND…: counts the command as one check
check() {
    local name=$1 seconds=$2 status=0 began=$SECONDS
    attempt "$@" || status=$?
    if [[ $status -eq 0 ]]; then
        pass "$name" "$(tally "$name")$((SECONDS - began)) s"
        return
    fi
    fail "$name" "$(reason "$name" "$status" "$seconds")"
    show_log "$name"
    return 1
}

# reason NAME STATUS SECONDS: the failed named checks, or the meaning of the status of `timeout`
reason() {
    local named
    named=$(sed -n 's/^FAIL \([^:]*\):.*/\1/p' "$(log_of "$1")" | paste -s -d ' ')
    case $2 in
        124 | 137) echo "not done within $3 s${named:+ (failed until then: $named)}" ;;
        *) echo "${named:-exit status $2}" ;;
    esac
}

# tally NAME: the program's own count, or the number of named checks that it printed
tally() {
    local log counted good other
    log=$(log_of "$1")
    counted=$(grep -E '^[0-9]+ oddities, ' "$log" | tail -n 1 || true)
    if [[ -n $counted ]]; then
        printf '%s, ' "$counted"
        return
    fi
    good=$(grep -c '^ok ' "$log" || true)
    other=$(grep -c '^skip ' "$log" || true)
    [[ $good -eq 0 ]] || printf '%s checks%s, ' "$good" "$([[ $other -eq 0 ]] || echo ", $other not applicable")"
}

# show_log NAME: a check's failures, else its compiler's errors, else the end of its output
show_log() {
    local log
    log=$(log_of "$1")
    if grep -q '^FAIL ' "$log"; then
        grep '^FAIL ' "$log" | cut -c 1-600 | sed 's/^/      | /'
    elif grep -q '^error' "$log"; then
        grep -A 8 '^error' "$log" | head -n "$TAIL_LINES" | cut -c 1-600 | sed 's/^/      | /'
    else
        tail -n "$TAIL_LINES" "$log" | cut -c 1-600 | sed 's/^/      | /'
    fi
}

# show_last_log: the end of the last attempt's log
show_last_log() {
    [[ ! -s $LAST_LOG ]] || tail -n "$TAIL_LINES" "$LAST_LOG" | cut -c 1-600 | sed 's/^/      | /'
}

# summary: prints the last line and returns the run's status
summary() {
    if [[ $FAILED -gt 0 ]]; then
        heading "failed"
        printf '%s\n' "${FAILURES[@]}"
    fi
    printf '\n%d passed, %d failed' "$PASSED" "$FAILED"
    [[ $SKIPPED -eq 0 ]] || printf ', %d skipped' "$SKIPPED"
    printf '\n'
    [[ $FAILED -eq 0 ]]
}
