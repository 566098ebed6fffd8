# shellcheck shell=bash
# Workers in other languages: checks the contract, then uses them behind a cluster.

WORKERS=$ROOT/workers
CHECK_SECONDS=300

suite_workers() {
    once build_shoal || return 0
    beside workers
}

workers() {
    heading "workers"
    local languages=() arguments=()
    if once python_worker; then
        languages+=(python)
        arguments+=(--python "$TOOLS/python-worker/bin/python")
        check "workers: python, by itself" "$CHECK_SECONDS" \
            "$TOOLS/python-worker/bin/python" -B -m unittest discover -s "$WORKERS/python/tests" || true
        checked_worker python "$TOOLS/python-worker/bin/python" -B "$WORKERS/python/tests/checked.py"
        # Tests the checks: each of these faults must be found.
        check "workers: planted faults are found" "$CHECK_SECONDS" \
            "$TOOLS/python-worker/bin/python" -B "$WORKERS/python/tests/planted.py" "$SHOAL" || true
    fi
    if once go_worker; then
        languages+=(go)
        arguments+=(--go "$TOOLS/go-worker")
        check "workers: go, by itself" "$INSTALL_SECONDS" go -C "$WORKERS/go" test ./... || true
        checked_worker go "$TOOLS/go-worker/checked"
    fi
    [[ ${#languages[@]} -gt 0 ]] || return 0
    local name="workers: ${languages[*]} behind two edges"
    if ! have redis; then
        fail "$name" "$(needs redis)"
    elif ready "$name" python; then
        check "$name" "$CHECK_SECONDS" "$TOOLS/python/bin/python" -B "$WORKERS/tests/cluster.py" \
            --shoal "$SHOAL" "${arguments[@]}" --keep-logs "$WORK/workers-cluster" || true
    fi
}

# checked_worker LANGUAGE COMMAND…: whether the worker keeps the contract
checked_worker() {
    local name="workers: $1 keeps the contract"
    shift
    # This proxy does not exist, because workers dial nodes directly.
    check "$name" "$CHECK_SECONDS" env http_proxy=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9 "$SHOAL" worker-check -- "$@" || true
}

# python_worker: installs the package as its users do
python_worker() {
    local name="workers: python is installed" home=$TOOLS/python-worker
    if ! have python; then
        skip "$name" "$(needs python)"
        return 1
    fi
    rm -rf "$home"
    check "$name" "$INSTALL_SECONDS" bash -c \
        "python3 -m venv '$home' && '$home/bin/pip' install --quiet --disable-pip-version-check '$WORKERS/python'"
}

# go_worker: builds the module's programs, and runs its tests
go_worker() {
    local name="workers: go is built"
    if ! have go; then
        skip "$name" "$(needs go)"
        return 1
    fi
    mkdir -p "$TOOLS/go-worker"
    check "workers: go vet" "$INSTALL_SECONDS" go -C "$WORKERS/go" vet ./... || true
    check "$name" "$INSTALL_SECONDS" go -C "$WORKERS/go" build -o "$TOOLS/go-worker/" ./...
}
