# shellcheck shell=bash
# The nodes, each with a container runtime, a kubelet and a proxy in its network; and the cluster's DNS.

IMAGE_SECONDS=180

containerd_config() {
    cat <<TOML
version = 2
root = "$WORK/disk/$1/containerd"
state = "/run/$1/containerd"
# This plugin would write to /opt.
disabled_plugins = ["io.containerd.internal.v1.opt"]
[grpc]
address = "/run/$1/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "$PAUSE_IMAGE"
# Containers start even if root may not protect a process from the kernel's OOM killer.
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "$CNI_PLUGINS"
conf_dir = "$WORK/$1/cni"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
TOML
}

cni_config() {
    cat <<JSON
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods", "isGateway": true, "hairpinMode": true,
 "ipam": {"type": "host-local", "dataDir": "/run/$1/addresses", "ranges": [[{"subnet": "$2"}]],
 "routes": [{"dst": "0.0.0.0/0"}]}}]}
JSON
}

kubelet_config() {
    cat <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $(node_address "$2")
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $KEYS/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $KEYS/$1.crt
tlsPrivateKeyFile: $KEYS/$1.key
cgroupDriver: cgroupfs
cgroupRoot: /$CGROUP/$1
clusterDNS: [$DNS_SERVICE]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix:///run/$1/containerd.sock
# Ignore how full this machine is.
evictionHard: {memory.available: "0%", nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%"}
imageGCHighThresholdPercent: 100
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
podLogsDir: $LOGS/pods-$1
resolvConf: $WORK/resolv.conf
serializeImagePulls: false
# How often pods' ConfigMaps and Secrets are updated; the default is a minute.
syncFrequency: 10s
volumePluginDir: $WORK/$1/plugins
YAML
}

proxy_config() {
    cat <<YAML
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: $KEYS/proxy.kubeconfig}
clusterCIDR: $PODS
hostnameOverride: $1
mode: iptables
oomScoreAdj: 0
# Keep the machine's limits.
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
YAML
}

start_node() {
    local node=$1 name=node$1 archive
    mkdir -p "$WORK/disk/$name" "$WORK/$name/cni" "/run/$name" "$LOGS/pods-$name"
    containerd_config "$name" >"$WORK/$name/containerd.toml"
    cni_config "$name" "$(pod_network "$node")" >"$WORK/$name/cni/pods.conflist"
    kubelet_config "$name" "$node" >"$WORK/$name/kubelet.yaml"
    proxy_config "$name" >"$WORK/$name/proxy.yaml"
    daemon "containerd-$name" "$name" containerd --config "$WORK/$name/containerd.toml"
    wait_for 60 "containerd of $name" ctr --address "/run/$name/containerd.sock" version || return 1
    for archive in "$WORK"/images/*.tar; do
        must "import-$name-$(basename "$archive")" timeout "$IMAGE_SECONDS" \
            ctr --address "/run/$name/containerd.sock" --namespace k8s.io images import "$archive" || return 1
    done
    daemon "kubelet-$name" "$name" kubelet --config "$WORK/$name/kubelet.yaml" --kubeconfig "$KEYS/$name.kubeconfig" \
        --root-dir "$WORK/disk/$name/kubelet" --hostname-override "$name" --node-ip "$(node_address "$node")" \
        --node-labels "topology.kubernetes.io/zone=zone$node"
    daemon "kube-proxy-$name" "$name" kube-proxy --config "$WORK/$name/proxy.yaml"
}

# start_policies: enforces NetworkPolicies on every node; the firewall needs the node to be registered
start_policies() {
    local node
    for ((node = 1; node <= NODES; node++)); do
        daemon "kube-router-node$node" "node$node" kube-router --kubeconfig "$KEYS/admin.kubeconfig" \
            --hostname-override "node$node" --run-firewall=true --run-router=false --run-service-proxy=false \
            --service-cluster-ip-range "$SERVICES" --iptables-sync-period 10s
    done
}

nodes_ready() { k wait --for=condition=Ready --timeout=10s $(seq -f 'node/node%g' "$NODES"); }

start_nodes() {
    local node began=$SECONDS
    # Kubelets copy it to pods that use the machine's DNS, which does not exist.
    echo "nameserver 127.0.0.1" >"$WORK/resolv.conf"
    for ((node = 1; node <= NODES; node++)); do
        start_node "$node" || return 1
    done
    wait_for 120 "nodes" nodes_ready || return 1
    start_policies
    pass "nodes" "$NODES ready in $((SECONDS - began)) s"
}

start_dns() {
    local began=$SECONDS
    sed -e "s|@IMAGE@|$DNS_IMAGE|" -e "s|@ADDRESS@|$DNS_SERVICE|" "$PARTS/dns.yaml" >"$WORK/dns.yaml"
    must dns-objects k apply -f "$WORK/dns.yaml" || return 1
    KUBECTL_SECONDS=130 must dns-ready k --namespace kube-system rollout status deployment/coredns --timeout 120s || return 1
    pass "names" "CoreDNS ready in $((SECONDS - began)) s"
}
