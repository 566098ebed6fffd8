# shellcheck shell=bash
# The documents of interop/openapi/corpus.

# corpus_install: the SDKs that read the lists
corpus_install() {
    python_install python && npm_install "$INTEROP/typescript" && npm_install "$INTEROP/typescript-v1"
}

# corpus_command PREVIEW: sets COMMAND to the words that convert the documents with this program
corpus_command() {
    COMMAND=("$TOOLS/python/bin/python" -B "$INTEROP/openapi/corpus/corpus.py" --preview "$1" --home "$TOOLS/openapi-corpus")
}

# openapi_sample: checks that SDK clients accept the tools of a fixed sample of documents
openapi_sample() {
    local name="interop: OpenAPI documents of vendors" language
    for language in node python; do
        have "$language" || { skip "$name" "$(needs "$language")" && return 0; }
    done
    if ! once corpus_install; then
        fail "$name" "the SDKs could not be installed"
        return 0
    fi
    if ! once build_tools; then
        fail "$name" "openapi_preview could not be built"
        return 0
    fi
    corpus_command "$PREVIEW"
    check "$name" 600 "${COMMAND[@]}" --sample || true
}
