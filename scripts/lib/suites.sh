# shellcheck shell=bash
# The test suites.

UNIT_SECONDS=3600
# Unit tests run in lanes beside each other. Each lane is what Cargo is told of its programs. These run beside other suites.
UNIT_LANES=("--lib --bins --test [!c]*" --doc)
# The tests of clusters (`ch*` is chaos) run after the other suites, because a cluster on busy processors may lose leases.
CLUSTER_LANES=("--test ch*" "--test c[!h]*")

suite_unit() {
    heading "unit"
    if ! have rust; then
        fail "unit" "$(needs rust)"
        return 0
    fi
    component "unit: format" rustfmt cargo-fmt && check "unit: format" 300 cargo fmt --all --check -- --files-with-diff || true
    lint_while_building
    # A separate workspace, which nothing else here builds.
    check "unit: lock file of the fuzz targets" 300 cargo metadata --locked --manifest-path fuzz/Cargo.toml --format-version 1 || true
    [[ ${suites[*]} != unit ]] || return 0
    # Only these, because all other suites wait for them.
    tools_build begin
    once prepare_suites "${suites[@]}"
    ! once build_tools || build_ahead
}

# suite_unit_ends: the part of suite_unit that ran beside other suites; clippy first, because it needs Cargo's lock
suite_unit_ends() {
    [[ ${suites[*]} == unit ]] || heading "unit, to its end"
    have rust || return 0
    lints check || true
    dependencies
    ! once tests_need || cargo_tests
}

# lint_while_building: lets clippy compile, in a run that builds everything anyway: `cargo clippy` would need another build of all
# dependencies. Other runs use what `cargo` has built.
lint_while_building() {
    if [[ ${CI:-} == true ]] && once component "unit: clippy" clippy cargo-clippy; then
        CARGO=(env RUSTC_WORKSPACE_WRAPPER=clippy-driver CARGO_FUTURE_INCOMPAT_REPORT_FREQUENCY=never cargo)
    fi
}

# lints VERB…: `begin_when_built NAME` or `check`
lints() {
    once component "unit: clippy" clippy cargo-clippy || return 1
    if [[ ${CARGO[0]} == cargo ]]; then
        "$@" "unit: clippy" "$UNIT_SECONDS" cargo clippy --locked --workspace --all-targets -- -D warnings
    else
        # Cargo repeats the warnings about what is built already. The tests' build has no benchmarks.
        # shellcheck disable=SC2016 # the shell that is started expands it
        "$@" "unit: clippy" "$UNIT_SECONDS" bash -c 'set -o pipefail
            { "$@" && "$@" --benches; } 2>&1 | awk "{ print } /^(warning|error)/ { found = 1 } END { exit found }"' \
            lints "${CARGO[@]}" test --locked --workspace --no-run
    fi
}

# begin_lanes LANE…: begins to compile and run them
begin_lanes() {
    local lane words earlier=
    for lane in "$@"; do
        # Words with patterns, which Cargo expands.
        read -ra words <<<"$lane"
        begin_when_built "$earlier" "unit: tests $lane" "$UNIT_SECONDS" \
            "${CARGO[@]}" test --locked --workspace --no-fail-fast "${words[@]}"
        earlier="unit: tests $lane"
    done
}

# build_ahead: begins to compile and run the unit tests, and to compile the needs of other suites and of the last checks
build_ahead() {
    local last="unit: tests ${UNIT_LANES[-1]}"
    ! once tests_need || begin_lanes "${UNIT_LANES[@]}"
    [[ -n ${TEST_SHOAL_BIN:-} || $(uname -s) != Linux ]] || static_build begin_when_built "$last"
    lints begin_when_built "$last" || true
}

# component NAME COMPONENT COMMAND: whether the check NAME has its tool; fetches a missing one
component() {
    command -v "$3" >/dev/null && cargo "${3#cargo-}" --version >/dev/null 2>&1 && return 0
    install_by "rustup-$2" rustup component add "$2" && return 0
    fail "$1" "needs $3: rustup component add $2"
    return 1
}

# Licences, sources and duplicates; the nightly run checks advisories, because it may fetch them.
dependencies() {
    local name="unit: dependencies"
    if ! have deny; then
        fail "$name" "$(needs deny)"
    else
        check "$name" 300 cargo deny --all-features --locked check bans licenses sources || true
    fi
}

# If more tests than this fail, they are not flaky and are not repeated.
FLAKY_MOST=3

# tests_need: the tests' programs. Some tests put stdio servers in Python behind Shoal, one runs the curl command that Shoal prints, one
# lets a Prometheus scrape a cluster, and one starts members with wrong clocks.
tests_need() {
    local name="unit: tests" tool
    if ! command -v curl >/dev/null && ! apt_install curl; then
        fail "$name" "needs curl: apt-get install curl"
        return 1
    fi
    for tool in python redis prometheus faketime; do
        if ! have "$tool"; then
            fail "$name" "$(needs "$tool")"
            return 1
        fi
    done
}

# cargo_tests: counts every test
cargo_tests() {
    local name="unit: tests" status=0 passed failed ignored began=$SECONDS lane log
    log=$(log_of "$name")
    if [[ -z ${BEGUN[$name ${UNIT_LANES[0]}]:-} ]]; then
        # A lane compiles no programs of other packages.
        once build_tools || return 0
        begin_lanes "${UNIT_LANES[@]}"
    fi
    begin_lanes "${CLUSTER_LANES[@]}"
    for lane in "${UNIT_LANES[@]}" "${CLUSTER_LANES[@]}"; do
        attempt "$name $lane" "$UNIT_SECONDS" || status=$?
        cat "$LAST_LOG" >>"$log"
    done
    read -r passed failed ignored < <(results "$log")
    if [[ $failed -gt 0 && $failed -le $FLAKY_MOST ]] && passes_alone "$log"; then
        passed=$((passed + failed))
        failed=0
        status=0
    fi
    PASSED=$((PASSED + passed))
    FAILED=$((FAILED + failed))
    SKIPPED=$((SKIPPED + ignored))
    if [[ $status -eq 0 && $passed -gt 0 ]]; then
        printf 'ok    %s (%d passed, %d ignored, %d s)\n' "$name" "$passed" "$ignored" $((SECONDS - began))
        return
    fi
    if [[ $failed -gt 0 ]]; then
        FAILURES+=("$name: $failed failed")
        printf 'FAIL  %s: %d passed, %d failed\n' "$name" "$passed" "$failed"
    elif [[ $status -eq 0 ]]; then
        fail "$name" "no tests were run"
    else
        # The run ended before the first test, or crashed during one.
        fail "$name" "$(reason "$name" "$status" "$UNIT_SECONDS")"
    fi
    grep -E '^test .* \.\.\. FAILED$|^error' "$log" | head -n 50 | sed 's/^/      | /' || true
    if [[ $failed -gt 0 ]]; then
        # The output of failed tests; the end of the log belongs to others.
        sed -n '/^---- .* stdout ----$/,/^failures:$/p' "$log" | grep -A 3 'panicked at' |
            head -n "$TAIL_LINES" | cut -c 1-600 | sed 's/^/      | /' || true
    else
        tail -n "$TAIL_LINES" "$log" | sed 's/^/      | /'
    fi
}

# results LOG: how many tests passed, failed and were ignored
results() {
    sed -n 's/^test result: .* \([0-9]*\) passed; \([0-9]*\) failed; \([0-9]*\) ignored.*/\1 \2 \3/p' "$1" |
        awk '{ passed += $1; failed += $2; ignored += $3 } END { print passed + 0, failed + 0, ignored + 0 }'
}

# passes_alone LOG: whether each failed test passes alone. Such a test depends on concurrent ones, which is a defect of the test or of
# Shoal. It is reported as flaky with its output, and counts as passed.
passes_alone() {
    local name="unit: failed tests alone" failing expected passed failed target
    mapfile -t failing < <(sed -n 's/^test \([^ ]*\) \.\.\. FAILED$/\1/p' "$1")
    expected=${#failing[@]}
    [[ $expected -gt 0 ]] || return 1
    : >"$WORK/alone"
    # The failed targets as Cargo names them: `-p shoal-node --test e2e`. Without the package, so that nothing is rebuilt.
    while read -r target; do
        # shellcheck disable=SC2086
        attempt "$name" 600 "${CARGO[@]}" test --locked --workspace --no-fail-fast $target -- \
            --exact --test-threads=1 "${failing[@]}" || true
        cat "$(log_of "$name")" >>"$WORK/alone"
    done < <(sed -n 's/^ *`-p [^ ]* \(--.*\)`$/\1/p' "$1" | sort -u)
    read -r passed failed _ < <(results "$WORK/alone")
    [[ $failed -eq 0 && $passed -eq $expected ]] || return 1
    printf 'flaky unit: %s\n' "${failing[@]}"
    sed -n '/^---- .* stdout ----$/,/^failures:$/p' "$1" | grep -A 3 'panicked at' | head -n "$TAIL_LINES" | cut -c 1-600 | sed 's/^/      | /' || true
}

suite_conformance() {
    once build_shoal || return 0
    beside heading "conformance"
    beside conformance_of_servers
    beside client "conformance: Shoal as a client" conformance-client --shoal "$SHOAL"
}

conformance_of_servers() {
    start_server conformance --conformance || return 0
    required_conformance "conformance"
    local revision
    # The suite has no list of requirements for these.
    for revision in 2025-03-26 2025-06-18; do
        client "conformance: what applies to $revision" conformance --url "$URL" --suite all --spec-version "$revision"
    done
    client "conformance: everything there is" conformance --url "$URL" --suite all
    stop_servers
}

# required_conformance NAME: each revision's requirements for servers
required_conformance() {
    local revision
    for revision in 2025-11-25 2026-07-28; do
        client "$1: what $revision requires" conformance --url "$URL" --requirements "$revision"
    done
}

# The longest parts begin first.
suite_interop() {
    once build_shoal || return 0
    beside heading "interop"
    beside against_odd_servers
    beside against_demo
    beside against_draining
    beside against_parsers
    beside against_tasks
    beside against_filesystem
    beside against_everything
    beside against_http_sse everything typescript-v1 --expect everything --own-process
    beside against_http_sse python python --expect asking --cannot "elicitation_by_result|Handler returned an invalid result|\
HTTP+SSE has no requests of 2026-07-28, and the SDK sends no InputRequiredResult to any other"
    beside odd_clients
    beside lists_of_callers
    beside openapi_requests
    beside openapi_sample
    eras
}

suite_interop_ends() {
    ! once build_shoal || print_matrix
}

against_demo() {
    resumable_upstream demo
    start_server demo --demo || return 0
    every_client interop
    client "interop: inspector, configured by Shoal" inspector --url "$URL" --shoal "$SHOAL" \
        --only configured_by_url --only configured_by_stdio
    stop_servers
}

# Shoal's output, by the parsing rules of SDKs that cannot run here.
against_parsers() {
    local json_url
    cat >"$WORK/json-response.toml" <<-END
		[server]
		json_response = true
		[pools.demo]
		backend = "demo"
	END
    start_server parsers-json --config "$WORK/json-response.toml" || return 0
    json_url=$URL
    if start_server parsers --demo; then
        client "interop: parsers of other SDKs" parsers --url "$URL" --json-url "$json_url"
    fi
    stop_servers
}

# Oddities of servers in the field, directly and through Shoal.
against_odd_servers() {
    CLIENT_SECONDS=1800 client "interop: odd servers" odd --shoal "$SHOAL"
}

# Odd requests of clients in the field, to servers of common SDKs and to Shoal.
odd_clients() {
    client "interop: odd clients" odd-clients --shoal "$SHOAL"
}

# Servers whose lists differ by caller, through one process and a cluster.
lists_of_callers() {
    if ! have redis; then
        fail "interop: lists of callers" "$(needs redis)"
        return 0
    fi
    CLIENT_SECONDS=600 client "interop: lists of callers" lists --shoal "$SHOAL"
}

# Requests of generated calls, compared with the specification and with FastMCP's.
openapi_requests() {
    client "interop: requests by OpenAPI documents" openapi --shoal "$SHOAL" --calls 500 --fastmcp
}

# Clients that support tasks, against fixtures whose calls become tasks.
against_tasks() {
    local client
    start_server tasks --conformance || return 0
    for client in python typescript; do
        client "interop: tasks, $client" "$client" --url "$URL" --era modern --expect tasks
    done
    client "interop: tasks, typescript-v1, legacy" typescript-v1 --url "$URL" --expect tasks
    stop_servers
}

# every_client NAME: all clients in all their eras, against the demo tools
every_client() {
    local client era
    for client in python typescript go rmcp inspector; do
        for era in legacy modern; do
            client "$1: $client, $era" "$client" --url "$URL" --era "$era"
        done
    done
    client "$1: typescript-v1, legacy" typescript-v1 --url "$URL"
    jvm_clients "$1"
    for client in typescript-v1 typescript python go; do
        client "$1: $client over HTTP+SSE" "$client" --url "${URL%/mcp}/sse" --era legacy
    done
}

# Clients share its processes here; the table of eras has one process per session.
against_everything() {
    local name="interop: server-everything" arguments
    ready "$name" servers || return 0
    asking_server_of everything
    known everything
    arguments=$(printf ', "%s"' "$KNOWN" "${COMMAND[@]}")
    # Every client makes the server crash once. Calls wait for its restart, however often it has crashed.
    cat >"$WORK/everything.toml" <<-END
		[pools.everything.backend.stdio]
		command = "$INTEROP/known"
		args = [${arguments#, }]
		max_restart_delay = "$PAUSE"
		isolation = "shared"
		[pools.everything]
		queue_age = "$PATIENCE"
	END
    start_server everything --config "$WORK/everything.toml" || return 0
    each_era "$name" --expect everything --known "$KNOWN"
    stop_servers
}

# against_http_sse SDK CLIENT ARGUMENT…: a server with only the transport of 2024-11-05
against_http_sse() {
    local sdk=$1 client=$2 name="interop: $1 over HTTP+SSE" program=$1
    shift 2
    [[ $sdk != everything ]] || program=servers
    ready "$name" "$program" || return 0
    asking_server_of "$sdk"
    known "$sdk-sse"
    case $sdk in
        everything) COMMAND=(env PORT=@PORT@ "${COMMAND[@]/%stdio/sse}") ;;
        *) COMMAND+=(--sse @PORT@) ;;
    esac
    start_upstream "$sdk-sse-upstream" "$INTEROP/known" --again "$KNOWN" "${COMMAND[@]}" || return 0
    cat >"$WORK/$sdk-sse.toml" <<-END
		[pools.asking]
		backend = { http = { url = "${UPSTREAM%/mcp}/sse", max_restart_delay = "$PAUSE" } }
		queue_age = "$PATIENCE"
	END
    if start_server "$sdk-sse" --config "$WORK/$sdk-sse.toml"; then
        client "$name, $client, legacy" "$client" --url "$URL" --era legacy --known "$KNOWN" "$@"
    fi
    stop_servers
}

against_filesystem() {
    local name="interop: server-filesystem" directory=$WORK/files
    ready "$name" servers || return 0
    mkdir -p "$directory/sub"
    echo 'Hello from a file.' >"$directory/hello.txt"
    start_server filesystem -- node \
        "$INTEROP/servers/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js" \
        "$directory" || return 0
    each_era "$name" --expect filesystem --dir "$directory"
    stop_servers
}

# each_era NAME ARGUMENT…: the clients that know other servers than the demo
each_era() {
    local name=$1 client era
    shift
    for client in python typescript; do
        for era in legacy modern; do
            client "$name, $client, $era" "$client" --url "$URL" --era "$era" "$@"
        done
    done
    client "$name, typescript-v1, legacy" typescript-v1 --url "$URL" "$@"
}

# The same through three edges, three session nodes, two workers and Redis, without stickiness.
suite_cluster() {
    if ! have redis; then
        fail "cluster" "$(needs redis)"
        return 0
    fi
    once build_shoal || return 0
    once build_tools || return 0
    beside heading "cluster"
    beside conformance_of_a_cluster
    beside against_demo_of_a_cluster
}

conformance_of_a_cluster() {
    if start_cluster cluster-conformance --conformance; then
        required_conformance "cluster: conformance"
        stop_servers
    fi
}

against_demo_of_a_cluster() {
    resumable_upstream cluster
    # The demo keeps its counter and its extra tool in memory, as many servers do.
    if start_cluster cluster-demo --demo --set pools.demo.backend=demo --set pools.demo.affinity=all; then
        every_client "cluster: interop"
        stop_servers
    fi
}

# The load tool's table with servers on other SDKs: verifies answers, but no figures.
suite_peers() {
    collect
    heading "peers"
    local name="peers: every answer of every row" language missing=() log
    if ! have redis; then
        fail "$name" "$(needs redis)"
        return 0
    fi
    for language in node python go; do
        have "$language" || missing+=("$(needs "$language")")
    done
    if [[ ${#missing[@]} -gt 0 ]]; then
        skip "$name" "${missing[*]}"
        return 0
    fi
    once build_shoal || return 0
    once build_tools || return 0
    check "$name" 1800 "$LOADTEST" table --shoal "$SHOAL" --peers all --peers-dir "$TOOLS/peers" \
        --sessions 8 --rounds 1 --seconds 1 --warmup 200ms || true
    # Outside tests, the table omits servers that cannot be installed or started; here all must be present.
    log=$(log_of "$name")
    if grep -q '^left out: ' "$log"; then
        fail "peers: no row is left out" "$(sed -n 's/^left out: //p' "$log" | head -n 3 | paste -s -d ';')"
    elif grep -q '^| floor ' "$log"; then
        pass "peers: no row is left out" "$(($(grep -c '^| ' "$log") - 1)) rows"
    fi
}

# The operators' console in a browser; TEST_SCREENSHOTS=DIR keeps pictures of it.
suite_console() {
    if ! have chromium; then
        fail "console" "$(needs chromium)"
        return 0
    fi
    once build_shoal || return 0
    once build_tools || return 0
    beside heading "console"
    beside in_a_browser
}

in_a_browser() {
    local screenshots=${TEST_SCREENSHOTS:-$WORK/screenshots} token=only-for-this-test-$RANDOM
    cat >"$WORK/console-hostile.toml" <<-END
		[pools.demo]
		backend = "demo"
		[pools.hostile.backend.stdio]
		command = "node"
		args = ["$INTEROP/console/hostile.js"]
	END
    if start_server console --config "$WORK/console-hostile.toml"; then
        client "console: by keyboard" console --url "$URL" --admin "$ADMIN" \
            --chromium "$CHROMIUM" --screenshots "$screenshots"
        # shellcheck disable=SC2016 # the shell that is started expands it
        check "console: a page of loadtest's results" 120 bash -c '"$1" load --url "$2" --mode modern --sessions 2 --warmup 200ms \
            --duration 1s --json "$3/load.json" && "$1" report "$3/load.json" -o "$3/load.html" &&
            "$4" --headless --no-sandbox --dump-dom "file://$3/load.html" | grep "<canvas"' \
            page "$LOADTEST" "$URL" "$WORK" "$CHROMIUM" || true
        stop_servers
    fi
    cat >"$WORK/console.toml" <<-END
		[server]
		admin_token = { value = "$token" }
		[pools.demo]
		backend = "demo"
		[pools.twin]
		backend = "demo"
	END
    if start_server console-with-token --config "$WORK/console.toml"; then
        client "console: with a token" console --url "$URL" --admin "$ADMIN" --token "$token" \
            --chromium "$CHROMIUM" --screenshots "$screenshots"
        stop_servers
    fi
}

suite_stdio() {
    once build_shoal || return 0
    beside heading "stdio"
    beside over_stdio "stdio, embedded" --demo
    beside over_stdio_to_a_node
}

over_stdio_to_a_node() {
    start_server stdio-demo --demo || return 0
    over_stdio "stdio, remote" --url "$URL"
    stop_servers
}

# over_stdio NAME ARGUMENT…: `shoal stdio` with these arguments
over_stdio() {
    local name=$1 client era
    shift
    for client in python typescript; do
        for era in legacy modern; do
            client "$name: $client, $era" "$client" --era "$era" -- "$SHOAL" stdio "$@"
        done
    done
    client "$name: typescript-v1, legacy" typescript-v1 -- "$SHOAL" stdio "$@"
}
