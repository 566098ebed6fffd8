# shellcheck shell=bash
# A pool is added, changed and removed under load, without replacing edges or session nodes.

POOLS_SECONDS=110
POOL_TAKEN_SECONDS=40

# nodes_as_they_are: the pods of edges and session nodes, with their restarts
nodes_as_they_are() {
    n get pods --selector 'app.kubernetes.io/component in (edge,session)' \
        -o 'jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[0].restartCount}{"\n"}{end}' | sort
}

# tools_of_edges: the offered tools, several times, because the Service balances over edges
tools_of_edges() {
    local _
    for _ in {1..6}; do
        in_net client timeout -k 5 20 "$SHOAL_BIN" tools --url "http://$(service_address)/mcp" || return 1
    done
}

# offered COUNT TOOL: whether that many of six answers have the tool
offered() {
    local found
    tools_of_edges >"$WORK/tools.txt" || return 1
    found=$(grep -cw "$2" "$WORK/tools.txt" || true)
    [[ $found -eq $1 ]] || { echo "$found of 6 answers name $2, not $1" && return 1; }
}

# pools_say VALUE…: upgrades with these values of the pool
pools_say() {
    local value sets=()
    for value in "$@"; do sets+=(--set "pools.late.$value"); done
    h upgrade "$RELEASE" "$CHART" -f "$WORK/values.yaml" "${sets[@]}" --wait --timeout 60s
}

# pool_comes_and_goes NAME: three upgrades, each until every edge has applied it
pool_comes_and_goes() {
    must pool-added pools_say backend=demo replicas=1 settings.prefix=late_ || return 1
    wait_for "$POOL_TAKEN_SECONDS" "$1: added" offered 6 late_echo || return 1
    must pool-changed pools_say backend=demo replicas=1 settings.prefix=later_ || return 1
    wait_for "$POOL_TAKEN_SECONDS" "$1: changed" offered 6 later_echo || return 1
    must pool-removed pools_say || return 1
    wait_for "$POOL_TAKEN_SECONDS" "$1: removed" offered 0 later_echo || return 1
}

check_pools() {
    local name="a pool is added, changed and removed under load" before after began=$SECONDS took
    before=$(nodes_as_they_are)
    start_load "$name" "$POOLS_SECONDS" || return 0
    pool_comes_and_goes "$name" || { drop_load; return 0; }
    took=$((SECONDS - began))
    after=$(nodes_as_they_are)
    [[ $before == "$after" ]] || fail "$name" "edges or session nodes are others: $(diff <(echo "$before") <(echo "$after") | paste -s -d ' ')"
    still_loaded "$name" || true
    end_load "$name" unnoticed "$(wc -l <<<"$after") pods stay, $took s" || true
}
