"""Compiles the contracts of `proto/` into `src/shoal_worker/_proto`.

    pip install grpcio-tools==1.76.0 && python generate.py

That release writes code for every protobuf from 6.31 to 7.x; a newer one would shut out older ones.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from grpc_tools import protoc

HERE = Path(__file__).parent
CONTRACTS = HERE.parent.parent / "proto"
TARGET = HERE / "src" / "shoal_worker" / "_proto"
FILES = ["shoal/types/v1/rpc.proto", "shoal/types/v1/link.proto", "shoal/types/v1/call.proto", "shoal/worker/v1/worker.proto"]


def main() -> int:
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir()
    status = protoc.main(["protoc", f"-I{CONTRACTS}", f"--python_out={TARGET}", f"--pyi_out={TARGET}", *FILES])
    for file in [*TARGET.rglob("*.py"), *TARGET.rglob("*.pyi")]:
        # protoc expects the contracts at the top of the import path.
        text = re.sub(r"^from shoal\.", "from shoal_worker._proto.shoal.", file.read_text(), flags=re.MULTILINE)
        file.write_text(text)
    for directory in [TARGET, *(path for path in TARGET.rglob("*") if path.is_dir())]:
        (directory / "__init__.py").write_text("")
    return status


if __name__ == "__main__":
    sys.exit(main())
