# shellcheck shell=bash
# The servers in the table of eras, and how each is put behind Shoal.

# The installed versions.
pinned() { sed -n "s/$2[\": =v]*\([0-9][0-9.]*\).*/\1/p" "$INTEROP/$1" | head -n 1; }

# eras: fills the table
eras() {
    local sdk
    declare -A TITLES=(
        [everything]="server-everything $(pinned servers/package.json '.*server-everything')"
        [fastmcp]="FastMCP $(pinned fastmcp/requirements.txt '^fastmcp')"
        [python]="Python SDK $(pinned python/requirements.txt '^mcp')"
        [servers]="TypeScript SDK $(pinned servers/package.json '.*modelcontextprotocol\/server')"
        [go]="Go SDK $(pinned go/go.mod '.*go-sdk')"
        [rmcp]="rmcp $(sed -n '/^name = "rmcp"/{n;s/version = "\(.*\)"/\1/p}' "$INTEROP/rmcp/Cargo.lock")"
        [python-worker]="Python worker"
        [go-worker]="Go worker"
        [openapi]="OpenAPI service"
    )
    MATRIX_SERVERS=()
    for sdk in everything fastmcp python servers go rmcp; do
        MATRIX_SERVERS+=("${TITLES[$sdk]}|stdio" "${TITLES[$sdk]}|HTTP")
    done
    MATRIX_SERVERS+=("Python worker|gRPC" "Go worker|gRPC" "OpenAPI service|OpenAPI")
    for sdk in everything fastmcp python servers go rmcp; do
        beside over_pipes "$sdk"
        beside over_http "$sdk"
    done
    beside over_grpc python
    beside over_grpc go
    beside over_openapi
}

# How long a call waits for a restarting server: longer than any start on a busy machine.
PATIENCE=60s
# The longest pause before a restart: the tests kill each server often, and restarts must not slow down.
PAUSE=500ms

# known NAME: a directory for a server that tests can find; sets KNOWN
known() {
    KNOWN=$WORK/known-$1
    mkdir -p "$KNOWN"
}

# expectations SDK OVER: sets EXPECT to the clients' expectations of the server
expectations() {
    EXPECT=(--expect asking --known "$KNOWN")
    [[ $1 == everything ]] || return 0
    EXPECT=(--expect everything --own-process --known "$KNOWN")
    case $2 in
        HTTP)
            EXPECT+=("modern:subscription|the update did not arrive|the server tells of a change only in the session that \
caused it, and the calls of a client of 2026-07-28 have no session in common with its subscription")
            ;;
    esac
}

# older_client SDK OVER: the reference server with the TypeScript SDK 1.x, which is not in the table
older_client() {
    [[ $1 == everything ]] || return 0
    client "interop: ${TITLES[$1]} over $2, typescript-v1, legacy" typescript-v1 \
        --url "$URL" --era legacy --expect everything --own-process --known "$KNOWN"
}

# over_pipes SDK: its server over stdio
over_pipes() {
    local sdk=$1 name="$1-stdio" arguments program=$1
    [[ $sdk != everything ]] || program=servers
    ready "matrix: ${TITLES[$sdk]} over stdio" "$program" || return 0
    asking_server_of "$sdk"
    known "$name"
    arguments=$(printf ', "%s"' "$KNOWN" "${COMMAND[@]}")
    cat >"$WORK/$name.toml" <<-END
		[pools.asking.backend.stdio]
		command = "$INTEROP/known"
		args = [${arguments#, }]
		max_restart_delay = "$PAUSE"
		$([[ $sdk == everything ]] || printf 'isolation = "shared"\nshare_roots = true')
		[pools.asking]
		queue_age = "$PATIENCE"
	END
    expectations "$sdk" stdio
    start_server "$name" --config "$WORK/$name.toml" || return 0
    matrix_row "${TITLES[$sdk]}" stdio "${EXPECT[@]}"
    older_client "$sdk" stdio
    stop_servers
}

# over_http SDK: its server behind a URL
over_http() {
    local sdk=$1 name="$1-http" program=$1
    [[ $sdk != everything ]] || program=servers
    ready "matrix: ${TITLES[$sdk]} over HTTP" "$program" || return 0
    asking_server_of "$sdk"
    known "$name"
    if [[ $sdk == everything ]]; then
        COMMAND=(env PORT=@PORT@ "${COMMAND[@]/%stdio/streamableHttp}")
    else
        COMMAND+=(--http @PORT@)
    fi
    expectations "$sdk" HTTP
    start_upstream "$name-upstream" "$INTEROP/known" --again "$KNOWN" "${COMMAND[@]}" || return 0
    cat >"$WORK/$name.toml" <<-END
		[pools.asking]
		backend = { http = { url = "$UPSTREAM", max_restart_delay = "$PAUSE" } }
		queue_age = "$PATIENCE"
	END
    if start_server "$name" --config "$WORK/$name.toml"; then
        matrix_row "${TITLES[$sdk]}" HTTP "${EXPECT[@]}"
        older_client "$sdk" HTTP
    fi
    stop_servers
}

# knows_what_is_missing NAME: waits until the node refuses an unknown tool. A node that has just started asks to retry instead.
knows_what_is_missing() {
    local deadline=$((SECONDS + START_SECONDS))
    until [[ $("$SHOAL" call --url "$URL" no-such-tool 2>&1 || true) == *"unknown tool"* ]]; do
        [[ $SECONDS -lt $deadline ]] || { fail "$1: knows what is missing" "not within $START_SECONDS s" && return 1; }
        sleep 0.3
    done
}

# over_grpc LANGUAGE: a worker in this language
over_grpc() {
    local language=$1 name="$1-worker" port nothing="the packages for workers serve tools, but no resources"
    once "${language}_worker" || return 0
    case $language in
        python) COMMAND=("$TOOLS/python-worker/bin/python" -B "$WORKERS/python/tests/asking.py") ;;
        go) COMMAND=("$TOOLS/go-worker/asking") ;;
    esac
    known "$name"
    port=$(free_port)
    cat >"$WORK/$name.toml" <<-END
		[state_keys]
		keys = [{ value = "$(printf 'ab%.0s' {1..32})" }]
	END
    start_worker "$name" env SHOAL_JOIN="127.0.0.1:$port" "$INTEROP/known" --again "$KNOWN" "${COMMAND[@]}"
    if start_server "$name-node" --config "$WORK/$name.toml" --roles edge,session --cluster-listen "127.0.0.1:$port" &&
        knows_what_is_missing "$name-node"; then
        matrix_row "${TITLES[$name]}" gRPC --expect asking --known "$KNOWN" \
            "legacy:subscription|method not found: resources/subscribe|$nothing" "modern:subscription|unknown tool|$nothing"
    fi
    stop_servers
}

# over_openapi: a service without MCP
over_openapi() {
    local name=openapi nothing="an OpenAPI document names no resources that change"
    ready "matrix: OpenAPI service over OpenAPI" python || return 0
    known "$name"
    start_upstream "$name-service" "$INTEROP/known" --again "$KNOWN" \
        "$TOOLS/python/bin/python" -B "$INTEROP/openapi/service.py" --http @PORT@ || return 0
    cat >"$WORK/$name.toml" <<-END
		[pools.asking]
		backend = { openapi = { document = "${UPSTREAM%/mcp}/openapi.json", max_restart_delay = "$PAUSE" } }
		queue_age = "$PATIENCE"
	END
    if start_server "$name" --config "$WORK/$name.toml"; then
        matrix_row "OpenAPI service" OpenAPI --expect asking --known "$KNOWN" \
            --cannot 'progress|got []|a request of HTTP has one answer, and tells no progress' \
            --cannot 'elicitation_by_request|unknown tool|a service over HTTP cannot ask its caller' \
            --cannot 'sampling|unknown tool|a service over HTTP cannot ask its caller' \
            --cannot 'roots|unknown tool|a service over HTTP cannot ask its caller' \
            "legacy:subscription|method not found: resources/subscribe|$nothing" "modern:subscription|unknown tool|$nothing"
    fi
    stop_servers
}
