# shellcheck shell=bash
# Runs programs in their own network, where the fixed ports of pages and examples are free.

# own_network NAME TOOL…: sets ALONE, which runs a command there, and links `shoal` into $WORK/path; skips or fails the check NAME if
# that is impossible or a tool is missing
own_network() {
    local name=$1 tool
    local unshared=(unshare --net)
    [[ $(id -u) -eq 0 ]] || unshared=(unshare --user --map-root-user --net)
    if ! "${unshared[@]}" true 2>/dev/null; then
        skip "$name" "needs root, or user namespaces, for a network of its own: its ports are fixed"
        return 1
    fi
    for tool in "${@:2}" ip; do
        if ! command -v "$tool" >/dev/null && ! apt_install "${tool/#ip/iproute2}"; then
            skip "$name" "needs $tool"
            return 1
        fi
    done
    if ! have redis; then
        fail "$name" "$(needs redis)"
        return 1
    fi
    once build_shoal || return 1
    mkdir -p "$WORK/path"
    ln -sf "$SHOAL" "$WORK/path/shoal"
    # shellcheck disable=SC2016 # the arguments are those of the inner shell
    ALONE=("${unshared[@]}" bash -c 'ip link set lo up && exec "$@"' alone)
}
