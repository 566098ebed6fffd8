# shellcheck shell=bash
# The trial's cgroups: one for each node's pods, and one for all its other processes.

# The trial's share of processor time if the machine has other work, as a number of single processes. Real clusters do not share their
# nodes, and a drain without processor time proves nothing.
WEIGHT=24

# make_cgroups: in every hierarchy; the caller moves into them
make_cgroups() {
    local hierarchy name
    if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
        hierarchy=/sys/fs/cgroup/$CGROUP
        mkdir "$hierarchy"
        delegate /sys/fs/cgroup
        delegate "$hierarchy"
        echo "$((100 * WEIGHT))" >"$hierarchy/cpu.weight"
        for name in daemons node1 node2 node3; do mkdir "$hierarchy/$name"; done
        echo "$$" >"$hierarchy/daemons/cgroup.procs"
        return
    fi
    for hierarchy in /sys/fs/cgroup/*/; do
        [[ -e $hierarchy/cgroup.procs && ! -e $hierarchy/cgroup.controllers ]] || continue
        for name in node1 node2 node3; do mkdir -p "$hierarchy/$CGROUP/$name"; done
    done
    mkdir "/sys/fs/cgroup/cpu/$CGROUP/daemons"
    echo "$((1024 * WEIGHT))" >"/sys/fs/cgroup/cpu/$CGROUP/cpu.shares"
    echo "$$" >"/sys/fs/cgroup/cpu/$CGROUP/daemons/cgroup.procs"
}

# delegate CGROUP: gives its children every controller
delegate() {
    sed 's/[a-z][a-z]*/+&/g' "$1/cgroup.controllers" >"$1/cgroup.subtree_control"
}
