# shellcheck shell=bash
# The cgroups of the trial: one for each node's pods, and one for everything else that it runs.

# How much processor time all of it gets where the machine has other work: as much as so many single processes. Clusters
# elsewhere do not share their nodes, and a drain that gets no time is no drain.
WEIGHT=24

# make_cgroups: in every hierarchy there is; who calls this is in them from then on
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

# delegate CGROUP: its children have every controller
delegate() {
    sed 's/[a-z][a-z]*/+&/g' "$1/cgroup.controllers" >"$1/cgroup.subtree_control"
}
