# shellcheck shell=bash
# What the documentation says to type is typed: every block of commands is run, or says why not (scripts/docs/run.py).

# the_book: mdBook makes the book of docs/, without a warning
the_book() {
    local name="docs: the book"
    if ! have python; then
        skip "$name" "$(needs python)"
    elif ! once python_install mdbook "$ROOT/scripts/docs/requirements.txt"; then
        fail "$name" "mdBook could not be installed"
        show_newest_log
    else
        check "$name" 120 python3 -B "$ROOT/scripts/docs/book.py" build "$TOOLS/mdbook/bin/mdbook" "$WORK/book" || true
    fi
}

suite_docs() {
    heading "docs"
    check "docs: what fails is named" 60 python3 -B -m unittest discover -s "$ROOT/scripts/docs" || true
    check "docs: every link between pages" 60 python3 -B "$ROOT/scripts/docs/links.py" || true
    the_book
    local name="docs: every command of every page" page tool run
    local alone=(unshare --net)
    [[ $(id -u) -eq 0 ]] || alone=(unshare --user --map-root-user --net)
    if ! "${alone[@]}" true 2>/dev/null; then
        skip "$name" "needs root, or user namespaces, for a network of its own: its ports are fixed"
        return
    fi
    for tool in curl ip openssl; do
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
    ready "$name" fastmcp || return 0
    once python_worker || return 0
    once build_shoal || return 0
    mkdir -p "$WORK/path"
    ln -sf "$SHOAL" "$WORK/path/shoal"
    run=(env PATH="$WORK/path:$TOOLS/python/bin:$PATH" WORKER_PYTHON="$TOOLS/python-worker/bin" FASTMCP_PYTHON="$TOOLS/fastmcp/bin" "${alone[@]}" bash -c
        "ip link set lo up && exec python3 -B '$ROOT/scripts/docs/run.py' \"\$@\"" run)
    check "docs: the recorded demonstration" 120 python3 -B "$ROOT/scripts/demo/record.py" --shoal "$SHOAL" --output "$WORK/demo.svg" || true
    for page in README.md CONTRIBUTING.md docs/{,start/,concepts/,guides/}*.md examples/README.md {deploy,helm,interop,loadtest,workers}/{,*/}*.md crates/*/README.md; do
        grep -qs '^ *```' "$page" || continue
        check "docs: $page" 200 "${run[@]}" "$ROOT/$page" 150 || true
    done
}
