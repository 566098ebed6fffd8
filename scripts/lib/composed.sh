# shellcheck shell=bash
# Servers of all kinds behind one Shoal: every client sees all their tools, and each server loses a worker.

COMPOSED_SECONDS=600

suite_composed() {
    once build_shoal || return 0
    once build_tools || true
    beside composed
}

composed() {
    heading "composed"
    local name="composed" arguments=() client log status=0 verdict rest
    if ! have redis; then
        fail "$name" "$(needs redis)"
        return 0
    fi
    for client in python typescript; do
        ready "$name" "$client" || return 0
    done
    if ready "$name: server-everything" servers; then arguments+=(--node); fi
    if ready "$name: FastMCP" fastmcp; then arguments+=(--fastmcp "$TOOLS/fastmcp/bin/python"); fi
    if ready "$name: rmcp" rmcp; then arguments+=(--rmcp "$TOOLS/rmcp/debug/ledger"); fi
    if once build_tools; then arguments+=(--crate "$LEDGER"); fi
    if once python_worker; then arguments+=(--python-worker "$TOOLS/python-worker/bin/python"); fi
    if once go_worker; then arguments+=(--go-worker "$TOOLS/go-worker/ledger"); fi
    attempt "$name" "$COMPOSED_SECONDS" "$TOOLS/python/bin/python" -B "$INTEROP/composed/run.py" --shoal "$SHOAL" \
        --python "$TOOLS/python/bin/python" "${arguments[@]}" --keep-logs "$WORK/composed" || status=$?
    log=$(log_of "$name")
    # Each server is a check.
    while read -r verdict rest; do
        case $verdict in
            ok) pass "$name: ${rest%%: *}" "${rest#*: }" ;;
            FAIL) fail "$name: ${rest%%: *}" "${rest#*: }" ;;
        esac
    done < <(grep -E '^(ok|FAIL) ' "$log")
    if ! grep -qE '^(ok|FAIL) ' "$log" || [[ $status -ne 0 ]] && ! grep -q '^FAIL ' "$log"; then
        # The program ended before the first server, or between servers.
        fail "$name" "$(reason "$name" "$status" "$COMPOSED_SECONDS")"
        show_log "$name"
    fi
}
