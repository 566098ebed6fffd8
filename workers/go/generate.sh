#!/usr/bin/env bash
# Compiles the contracts of proto/ into shoalpb/. Needs Go and Python.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
GOBIN=$tools go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
GOBIN=$tools go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
python3 -m venv "$tools/python"
"$tools/python/bin/pip" install --quiet --disable-pip-version-check grpcio-tools==1.76.0
module=github.com/shoal-mcp/shoal/workers/go
rm -rf shoalpb
PATH=$tools:$PATH "$tools/python/bin/python" -m grpc_tools.protoc -I ../../proto \
    --go_out=. --go_opt=module=$module --go-grpc_out=. --go-grpc_opt=module=$module \
    shoal/types/v1/rpc.proto shoal/types/v1/link.proto shoal/types/v1/call.proto shoal/worker/v1/worker.proto
