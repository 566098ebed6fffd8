# shellcheck shell=bash
# Builds users' programs with the newest versions of their dependencies, through their package managers.

WORKERS=$TOOLS/workers
AUTHOR_SECONDS=5400

# copies: interop/ and workers/, and the files that they use by relative paths
copies() {
    rm -rf "$INTEROP" "$WORKERS" "$TOOLS/crates"
    mkdir -p "$TOOLS"
    git ls-files -z interop workers crates/shoal/examples | xargs -0 cp --parents -t "$TOOLS"
}

# picks NAME HOW DIRECTORY ARGUMENT…: one check that versions are found; prints them
picks() {
    local name="newest: versions of $1"
    shift
    if install_by "$name" python3 -B "$ROOT/scripts/newest.d/pick.py" "$@"; then
        pass "$name" "$(tail -n 1 "$(log_of "$name")")"
    else
        fail "$name" "they could not be found"
        show_log "$name"
        return 1
    fi
}

newest_authors() {
    heading "authors"
    local crate=$WORK/author
    if ! have rust || ! have python; then
        fail "newest: a crate" "$(needs rust), $(needs python)"
        return 0
    fi
    # Outside the project's directory, because its workspace would include it.
    picks "a crate that cargo adds to" author "$crate" "$ROOT/crates/shoal" || return 0
    check "newest: examples of crates/shoal are built" "$AUTHOR_SECONDS" \
        env CARGO_PROFILE_DEV_DEBUG=0 cargo build --bins --manifest-path "$crate/Cargo.toml" --target-dir "$TOOLS/author" || return 0
    author_serves weather now '{"city": "Oslo"}' "Oslo: 21 degrees"
    author_serves notes note '{"title": "one", "text": "1"}' "noted one"
    author_serves booking book
    author_works
}

# author_serves EXAMPLE TOOL [ARGUMENTS ANSWER]: whether the program is ready, lists the tool, and gives the answer
author_serves() {
    local name="newest: $1" program=$TOOLS/author/debug/$1 SHOAL=$TOOLS/author/debug/$1
    start_server "$name" || return 0
    # shellcheck disable=SC2016 # the shell that is started expands it
    check "$name: lists $2" 30 bash -c '"$0" tools --url "$1" | tee /dev/stderr | grep -qw "$2"' "$program" "$URL" "$2" || true
    [[ $# -lt 4 ]] || check "$name: answers a call of $2" 30 bash -c '"$0" call --era legacy --url "$1" "$2" "$3" | tee /dev/stderr | grep -qF "$4"' \
        "$program" "$URL" "$2" "${3:-}" "${4:-}" || true
    stop_servers
}

# author_works: a worker embedded in another program, which joins a serving one
author_works() {
    local name="newest: worker" port SHOAL=$TOOLS/author/debug/weather
    port=$(free_port)
    start_server "$name, its node" --cluster-listen "127.0.0.1:$port" || return 0
    start_worker newest-worker "$TOOLS/author/debug/worker" "127.0.0.1:$port"
    # shellcheck disable=SC2016 # the shell that is started expands it
    check "$name: answers a call of uptime" 30 bash -c 'until "$0" call --url "$1" uptime; do sleep 0.5; done' "$SHOAL" "$URL" || true
    stop_servers
}

newest_workers() {
    heading "workers"
    once copies
    # pip takes the newest versions anyway, because the package locks none.
    ! have go || picks "workers/go" go "$WORKERS/go" || true
    python_peer python || true
    prepare_suites workers
    suite_workers
    collect
}

newest_interop() {
    heading "interop"
    local program
    once copies
    for program in python fastmcp; do
        python_peer "$program" || true
    done
    for program in typescript typescript-v1 inspector servers; do
        ! have node || picks "interop/$program" npm "$INTEROP/$program" || true
    done
    ! have go || picks "interop/go" go "$INTEROP/go" || true
    ! have rust || picks "interop/rmcp" rmcp "$INTEROP/rmcp" || true
    prepare_suites interop
    suite_interop
    collect
    suite_interop_ends
}

# python_peer PROGRAM
python_peer() {
    have python || return 0
    [[ -x $TOOLS/resolver/bin/pip ]] || attempt resolver-venv "$INSTALL_SECONDS" python3 -m venv "$TOOLS/resolver" || true
    once picks "interop/$1" pip "$INTEROP/$1" "$TOOLS/resolver/bin/pip"
}
