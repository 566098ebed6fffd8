# shellcheck shell=bash
# What the documentation says to type is typed.

suite_docs() {
    heading "docs"
    local name="docs: the tutorial" readme="docs: a server behind two edges, as in README.md" tool run
    local alone=(unshare --net)
    [[ $(id -u) -eq 0 ]] || alone=(unshare --user --map-root-user --net)
    if ! "${alone[@]}" true 2>/dev/null; then
        skip "$name" "needs root, or user namespaces, for a network of its own: its ports are fixed"
        return
    fi
    for tool in curl ip; do
        if ! command -v "$tool" >/dev/null && ! apt_install "${tool/#ip/iproute2}"; then
            skip "$name" "needs $tool"
            return
        fi
    done
    if ! have redis; then
        fail "$name" "$(needs redis)"
        return
    fi
    ready "$name" python || return 0
    once build_shoal || return 0
    mkdir -p "$WORK/path"
    ln -sf "$SHOAL" "$WORK/path/shoal"
    run=(env PATH="$WORK/path:$TOOLS/python/bin:$PATH" "${alone[@]}" bash -c
        "ip link set lo up && exec python3 -B '$ROOT/scripts/docs/run.py' \"\$@\"" run)
    check "$name" 200 "${run[@]}" "$ROOT/docs/tutorial.md" 150 || true
    # A server that was there before: one of those that run behind Shoal in `interop`.
    check "$readme" 150 "${run[@]}" "$ROOT/README.md" 100 \
        --section "A server in Python behind two edges" --server "$INTEROP/python/asking.py" || true
}
