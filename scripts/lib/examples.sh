# shellcheck shell=bash
# The examples: the test of each, and the commands of its page. Each has a network of its own, where the ports of its files are free.

EXAMPLE_SECONDS=200

suite_examples() {
    heading "examples"
    local name="examples" tool example run alone=(unshare --net)
    [[ $(id -u) -eq 0 ]] || alone=(unshare --user --map-root-user --net)
    if ! "${alone[@]}" true 2>/dev/null; then
        skip "$name" "needs root, or user namespaces, for a network of its own: its ports are fixed"
        return
    fi
    for tool in curl ip openssl haproxy; do
        if ! command -v "$tool" >/dev/null && ! apt_install "${tool/#ip/iproute2}"; then
            skip "$name" "needs $tool"
            return
        fi
    done
    if ! have redis; then
        fail "$name" "$(needs redis)"
        return
    fi
    if ! have helm3; then
        fail "$name" "needs Helm 3, which npm fetches: $(needs node)"
        return 0
    fi
    ready "$name" fastmcp && ready "$name" authorization || return 0
    once build_shoal || return 0
    mkdir -p "$WORK/path"
    ln -sf "$SHOAL" "$WORK/path/shoal"
    for example in examples/*/test; do
        example=${example%/test}
        # It is built with what other suites need.
        [[ $example != */rust-server ]] || once build_tools || continue
        run=(env PATH="$WORK/path:$TOOLS/fastmcp/bin:$PATH" HELM="$HELM3" NIM="${NIM:-}" "${alone[@]}" bash -c 'ip link set lo up && exec python3 -B "$@"' run)
        check "$example" "$EXAMPLE_SECONDS" "${run[@]}" "$ROOT/$example/test" || true
        check "$example/README.md" "$EXAMPLE_SECONDS" "${run[@]}" "$ROOT/scripts/docs/run.py" "$ROOT/$example/README.md" 150 || true
    done
}
