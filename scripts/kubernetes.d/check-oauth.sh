# shellcheck shell=bash
# Edges use an authorization server in another namespace while NetworkPolicies are enforced, and require its tokens.

ISSUER=https://issuer.identity.svc

# issuer_objects: the authorization server; its port differs from its Service's
issuer_objects() {
    cat <<YAML
apiVersion: v1
kind: Service
metadata: {name: issuer}
spec: {selector: {app: issuer}, ports: [{port: 443, targetPort: 8443}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: issuer}
spec:
  selector: {matchLabels: {app: issuer}}
  template:
    metadata: {labels: {app: issuer}}
    spec:
      securityContext: {runAsNonRoot: true, runAsUser: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
      containers:
        - name: issuer
          image: $ISSUER_IMAGE
          args: [--issuer, "$ISSUER", --certificate, /tls/tls.crt, --key, /tls/tls.key]
          readinessProbe: {tcpSocket: {port: 8443}, periodSeconds: 1}
          securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
          volumeMounts: [{name: tls, mountPath: /tls, readOnly: true}]
      volumes: [{name: tls, secret: {secretName: issuer}}]
YAML
}

start_issuer() {
    certificate issuer /CN=issuer "DNS:issuer.identity.svc"
    n create secret tls issuer --cert "$KEYS/issuer.crt" --key "$KEYS/issuer.key" &&
        issuer_objects | n apply -f - && n rollout status deployment/issuer --timeout 50s
}

oauth_values() {
    bundled
    cat <<YAML
networkPolicy: {enabled: true}
edge:
  config:
    auth:
      mode: oauth
      allow_anonymous: false
      resource: $1
      issuers: [{issuer: "$ISSUER", authority: /run/issuer/ca.crt}]
  extraVolumes: [{name: issuer, configMap: {name: issuer}}]
  extraVolumeMounts: [{name: issuer, mountPath: /run/issuer, readOnly: true}]
test: {tokenSecret: {name: caller}}
YAML
}

# token RESOURCE: an access token of the issuer
token() {
    local address
    address=$(k --namespace identity get service issuer -o 'jsonpath={.spec.clusterIP}')
    in_net client curl -sS --fail --max-time 10 --cacert "$KEYS/ca.crt" --resolve "issuer.identity.svc:443:$address" \
        --data-urlencode "resource=$1" "$ISSUER/token" | sed -n 's/.*"access_token":"\([^"]*\)".*/\1/p'
}

# status_with HEADER: an edge's status for `tools/list`
status_with() {
    in_net client curl -sS -o /dev/null -w '%{http_code}' --max-time 20 -X POST "$(edge_url)" -H "$1" \
        -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
        -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/list' \
        -d '{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}}'
}

check_oauth() { with_place identity with_issuer; }

with_issuer() {
    must issuer start_issuer || return 1
    with_place oauth behind_oauth
}

behind_oauth() {
    local name="OAuth" resource="http://$RELEASE-shoal-edge.oauth.svc/mcp" token other
    oauth_values "$resource" >"$WORK/oauth.yaml"
    must issuer-authority n create configmap issuer --from-file="ca.crt=$KEYS/ca.crt" || return 1
    token=$(token "$resource") other=$(token https://another.example/mcp)
    must caller n create secret generic caller --from-literal=token="$token" || return 1
    must oauth-install h install "$RELEASE" "$CHART" -f "$WORK/oauth.yaml" --wait --timeout 180s || return 1
    pass "$name: ready" "$(ready_pods edge) edges, the issuer is in another namespace"
    must oauth-call answers --token "$token" || return 1
    must oauth-test h test "$RELEASE" --logs --timeout 120s || return 1
    expect_status "$name: with a token" 200 "Authorization: Bearer $token"
    expect_status "$name: without a token" 401 "X-None: 1"
    expect_status "$name: with a token for another server" 401 "Authorization: Bearer $other"
    check_policies
}

# expect_status NAME STATUS HEADER
expect_status() {
    local status
    status=$(status_with "$3")
    [[ $status == "$2" ]] || { fail "$1" "answered $status, not $2" && return 1; }
    pass "$1" "$status"
}
