# shellcheck shell=bash
# Identities in the cluster: certificates of one authority, and kubeconfig files.

KEYS=$WORK/keys
API=https://$(node_address 1):6443

# certificate NAME SUBJECT [NAMES]: issues a certificate
certificate() {
    local name=$1 subject=$2 names=${3:-}
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "$subject" \
        -keyout "$KEYS/$name.key" -out "$KEYS/$name.csr"
    openssl x509 -req -in "$KEYS/$name.csr" -CA "$KEYS/ca.crt" -CAkey "$KEYS/ca.key" -days 2 -out "$KEYS/$name.crt" \
        -extfile <(printf 'keyUsage=digitalSignature\nextendedKeyUsage=clientAuth,serverAuth\n%s\n' "${names:+subjectAltName=$names}")
} >>"$LOGS/certificates.log" 2>&1

# kubeconfig NAME: the file with which NAME reaches the API
kubeconfig() {
    cat >"$KEYS/$1.kubeconfig" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: trial, cluster: {server: "$API", certificate-authority: $KEYS/ca.crt}}]
users: [{name: $1, user: {client-certificate: $KEYS/$1.crt, client-key: $KEYS/$1.key}}]
contexts: [{name: trial, context: {cluster: trial, user: $1}}]
current-context: trial
YAML
}

make_certificates() {
    local node
    mkdir -p "$KEYS"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=trial \
        -keyout "$KEYS/ca.key" -out "$KEYS/ca.crt" >>"$LOGS/certificates.log" 2>&1
    openssl genrsa -out "$KEYS/accounts.key" 2048 >>"$LOGS/certificates.log" 2>&1
    certificate api /CN=kube-apiserver \
        "IP:$(node_address 1),IP:$API_SERVICE,IP:127.0.0.1,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"
    certificate api-to-kubelet /O=system:masters/CN=api-to-kubelet
    certificate admin /O=system:masters/CN=admin
    certificate controllers /CN=system:kube-controller-manager
    certificate scheduler /CN=system:kube-scheduler
    certificate proxy /CN=system:kube-proxy
    for ((node = 1; node <= NODES; node++)); do
        certificate "node$node" "/O=system:nodes/CN=system:node:node$node" "IP:$(node_address "$node"),DNS:node$node"
        kubeconfig "node$node"
    done
    for name in admin controllers scheduler proxy; do kubeconfig "$name"; done
    pass "certificates"
}
