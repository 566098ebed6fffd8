# shellcheck shell=bash
# OAuth flows of the official clients with a real authorization server.

# A token's lifetime; the clients wait for its end.
TOKEN_SECONDS=5

suite_auth() {
    once build_shoal || return 0
    beside heading "auth"
    beside with_tokens jwt
    beside with_tokens opaque
}

# with_tokens FORMAT: all flows with tokens of that format
with_tokens() {
    local format=$1 client era
    start_authorized "$format" || return 0
    for client in python typescript; do
        for era in legacy modern; do
            authorizes "auth: $client, $era, $format" "$client" --url "$URL" --era "$era" --ttl "$TOKEN_SECONDS"
        done
    done
    # The Python SDK has no DPoP.
    for era in legacy modern; do
        authorizes "auth: typescript, $era, $format, DPoP" typescript --url "$URL" --era "$era" \
            --ttl "$TOKEN_SECONDS" --dpop
    done
    stop_servers
}

# start_authorized FORMAT: starts an authorization server with tokens of that format, and Shoal, which trusts it; sets URL
start_authorized() {
    local format=$1 port more=() config=$WORK/authorized-$1.toml
    if ! have node; then
        fail "auth: authorization server" "$(needs node)"
        return 1
    fi
    if ! once prepare authorization; then
        fail "auth: authorization server" "it could not be installed"
        return 1
    fi
    port=$(free_port)
    [[ $format == jwt ]] || more=(--opaque)
    start_upstream "authorization-$format" node "$INTEROP/authorization/server.js" --port @PORT@ \
        --resource "http://127.0.0.1:$port/mcp" --ttl "$TOKEN_SECONDS" "${more[@]}" || return 1
    printf 'open sesame\n' >"$WORK/introspection-secret"
    cat >"$config" <<END
[auth]
mode = "oauth"
resource = "http://127.0.0.1:$port/mcp"
required_scopes = ["mcp"]
tool_scopes = { add = ["math"] }
dpop = "accepted"
clock_skew = "0s"
[[auth.issuers]]
issuer = "${UPSTREAM%/mcp}"
END
    [[ $format == jwt ]] || cat >>"$config" <<END
introspection = { client_id = "shoal", client_secret_file = "$WORK/introspection-secret" }
END
    LISTEN=127.0.0.1:$port start_server "authorized-$format" --config "$config" --demo
}

# authorizes NAME CLIENT ARGUMENT…: one run of the client's program as one check
authorizes() {
    local name=$1 client=$2 logged program
    shift 2
    ready "$name" "$client" || return 0
    case $client in
        python) program=("$TOOLS/python/bin/python" -B "$INTEROP/python/authorization.py") ;;
        typescript) program=(node "$INTEROP/typescript/authorization.js") ;;
    esac
    logged=$(server_log_size)
    check "$name" "$CLIENT_SECONDS" "${program[@]}" "$@" || show_server_log "$logged"
}
