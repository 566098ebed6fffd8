# shellcheck shell=bash
# The trial's private directories and networks, which end with its last process.

NODES=3
# The addresses: nodes and client 10.123.0.0/24, pods 10.124.NODE.0/24, services 10.125.0.0/16.
SERVICES=10.125.0.0/16
PODS=10.124.0.0/16
API_SERVICE=10.125.0.1
DNS_SERVICE=10.125.0.10
CLIENT_ADDRESS=10.123.0.100

node_address() { echo "10.123.0.1$1"; }
pod_network() { echo "10.124.$1.0/24"; }

# in_net NAMESPACE COMMAND…: without `ip netns exec`, which hides the cgroups
in_net() {
    nsenter --net="/run/netns/$1" "${@:2}"
}

# private_places: covers the directories that the programs write to, in the trial's mount namespace
private_places() {
    local place setting value
    mkdir -p /var/lib/cni
    for place in /run /var/log /var/lib/cni; do
        mount -t tmpfs -o size=64m tmpfs "$place"
    done
    mkdir -p /run/netns "$WORK/kernel"
    # The kernel settings that a kubelet requires are faked and not changed on the machine.
    for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
        kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
        value=$WORK/kernel/$(basename "${setting%=*}")
        echo "${setting#*=}" >"$value"
        mount --bind "$value" "/proc/sys/${setting%=*}"
    done
}

# plug NAMESPACE ADDRESS: a network namespace on the bridge
plug() {
    ip netns add "$1"
    in_net "$1" ip link set lo up
    ip link add "to-$1" netns wire type veth peer name eth0 netns "$1"
    in_net wire ip link set "to-$1" master bridge up
    in_net "$1" ip address add "$2/24" dev eth0
    in_net "$1" ip link set eth0 up
    in_net "$1" ip route add default dev eth0
}

make_network() {
    local node other
    ip netns add wire
    in_net wire ip link add bridge type bridge
    in_net wire ip link set bridge up
    for ((node = 1; node <= NODES; node++)); do
        plug "node$node" "$(node_address "$node")"
        in_net "node$node" sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0
        # A Service's answer from a pod of the same node must pass the rules again.
        in_net "node$node" sysctl -qw net.bridge.bridge-nf-call-iptables=1 2>/dev/null || true
        for ((other = 1; other <= NODES; other++)); do
            [[ $other -eq $node ]] ||
                in_net "node$node" ip route add "$(pod_network "$other")" via "$(node_address "$other")"
        done
    done
    # Clients are outside the cluster, and enter through a node.
    plug client "$CLIENT_ADDRESS"
    in_net client ip route add "$SERVICES" via "$(node_address 1)"
    pass "network" "$NODES nodes and a client"
}
