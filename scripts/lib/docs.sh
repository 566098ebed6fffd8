# shellcheck shell=bash
# Runs every block of commands in the documentation, unless the page says why not (scripts/docs/run.py).

# the_book: mdBook makes the book of docs/ without a warning
the_book() {
    local name="docs: the book"
    if ! have python; then
        skip "$name" "$(needs python)"
    elif ! once python_install mdbook "$ROOT/scripts/docs/requirements.txt"; then
        fail "$name" "mdBook could not be installed"
        show_last_log
    else
        check "$name" 120 python3 -B "$ROOT/scripts/docs/book.py" build "$TOOLS/mdbook/bin/mdbook" "$WORK/book" || true
    fi
}

suite_docs() {
    once build_shoal || return 0
    beside docs
    # Two parts, because one would outlast all other suites.
    beside pages README.md CONTRIBUTING.md docs/*.md
    beside pages docs/{start,concepts,guides}/*.md examples/README.md {deploy,helm,interop,loadtest,workers}/{,*/}*.md crates/*/README.md
}

docs() {
    heading "docs"
    check "docs: what fails is named" 60 python3 -B -m unittest discover -s "$ROOT/scripts/docs" || true
    check "docs: every link between pages" 60 python3 -B "$ROOT/scripts/docs/links.py" || true
    the_book
    check "docs: the recorded demonstration" 120 python3 -B "$ROOT/scripts/demo/record.py" --shoal "$SHOAL" --output "$WORK/demo.svg" || true
}

# pages FILE…: every command of these pages
pages() {
    local name="docs: every command of every page" page run
    ready "$name" python || return 0
    ready "$name" fastmcp || return 0
    once python_worker || return 0
    own_network "$name" curl openssl || return 0
    run=(env PATH="$WORK/path:$TOOLS/python/bin:$PATH" WORKER_PYTHON="$TOOLS/python-worker/bin" FASTMCP_PYTHON="$TOOLS/fastmcp/bin"
        "${ALONE[@]}" python3 -B "$ROOT/scripts/docs/run.py")
    for page in "$@"; do
        grep -qs '^ *```' "$page" || continue
        check "docs: $page" 200 "${run[@]}" "$ROOT/$page" 150 || true
    done
}
