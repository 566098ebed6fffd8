# shellcheck shell=bash
# The control plane, on the first node.

# daemon NAME NAMESPACE COMMAND…: runs in the background until the trial ends
daemon() {
    local log=$LOGS/$1.log
    shift
    in_net "$@" >"$log" 2>&1 </dev/null &
}

# k ARGUMENT…: kubectl for the trial's administrator
k() {
    in_net node1 timeout -k 5 "${KUBECTL_SECONDS:-60}" kubectl --kubeconfig "$KEYS/admin.kubeconfig" "$@"
}

start_control() {
    local began=$SECONDS
    daemon etcd node1 etcd --data-dir "$WORK/disk/etcd" --unsafe-no-fsync
    daemon kube-apiserver node1 kube-apiserver \
        --advertise-address "$(node_address 1)" --etcd-servers http://127.0.0.1:2379 \
        --service-cluster-ip-range "$SERVICES" --authorization-mode Node,RBAC \
        --enable-admission-plugins NodeRestriction --allow-privileged=false \
        --client-ca-file "$KEYS/ca.crt" --tls-cert-file "$KEYS/api.crt" --tls-private-key-file "$KEYS/api.key" \
        --kubelet-client-certificate "$KEYS/api-to-kubelet.crt" --kubelet-client-key "$KEYS/api-to-kubelet.key" \
        --kubelet-certificate-authority "$KEYS/ca.crt" --kubelet-preferred-address-types InternalIP \
        --service-account-issuer https://kubernetes.default.svc \
        --service-account-key-file "$KEYS/accounts.key" --service-account-signing-key-file "$KEYS/accounts.key"
    wait_for 120 "the API server" api_ready || return 1
    daemon kube-controller-manager node1 kube-controller-manager \
        --kubeconfig "$KEYS/controllers.kubeconfig" --use-service-account-credentials --leader-elect=false \
        --service-account-private-key-file "$KEYS/accounts.key" --root-ca-file "$KEYS/ca.crt" \
        --cluster-signing-cert-file "$KEYS/ca.crt" --cluster-signing-key-file "$KEYS/ca.key" \
        --node-monitor-grace-period 40s
    daemon kube-scheduler node1 kube-scheduler --kubeconfig "$KEYS/scheduler.kubeconfig" --leader-elect=false
    pass "control plane" "$((SECONDS - began)) s"
}

api_ready() { KUBECTL_SECONDS=5 k get --raw /readyz; }
