"""Compares Shoal with FastMCP's `from_openapi` on documents of the corpus: how many tools each has, and the requests of some calls.

    beside.py --shoal PROGRAM --home DIRECTORY [--documents N] [--calls N] [--seed N]

Shoal may not have fewer tools. Its requests must be what `encode.py` says. FastMCP's request is the same, or another one than the
specification says. Arguments are not checked: they are made without regard to patterns and lengths.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path

from compare import FastMcp, differences, shaped
from documents import Document, Operation
from encode import expected
from generate import arguments
from recorder import Recorder
from shoal import Shoal

sys.path.insert(0, str(Path(__file__).parent / "corpus"))
from packages import install  # noqa: E402

# Documents per process.
BATCH = 20
# Maximum bytes of a document, because FastMCP takes minutes for the largest.
LARGEST = 400_000
# OpenAPI ignores parameters with some of these names (Parameter Object, `name`); HTTP itself uses the rest.
HEADERS = ("accept", "authorization", "content-type", "cookie", "host", "content-length", "user-agent", "connection")
# Maximum printed differences of one kind.
SHOWN = 8
PLAIN_ID = re.compile("^[A-Za-z][A-Za-z0-9_-]{0,49}$")
METHODS = ("get", "put", "post", "delete", "patch", "head", "options")


class Vendor(Document):
    """A vendor's document: the operations that the encoder supports."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        schemes = (self.root.get("components") or {}).get("securitySchemes") or {}
        schemes = [self.resolve(scheme)[0] for scheme in schemes.values()]
        self.keys = {(scheme.get("name", "").lower(), scheme.get("in")) for scheme in schemes if scheme.get("type") == "apiKey"}
        self.passed_over = 0

    def load(self, file: Path) -> object:
        if file.suffix == ".json" and file.resolve() not in self.files:
            self.files[file.resolve()] = json.loads(file.read_text(encoding="utf-8-sig"))
        return super().load(file)

    def some(self, rng: random.Random, most: int) -> list[Operation]:
        found = []
        written = [
            (method.upper(), path, item, item[method])
            for path, item in self.root["paths"].items() if not path.startswith("x-")
            for method in METHODS if isinstance(item.get(method), dict)
        ]
        ids = Counter(operation.get("operationId") for *_, operation in written)
        rng.shuffle(written)
        for method, path, item, operation in written:
            if len(found) == most:
                break
            name = str(operation.get("operationId"))
            if not PLAIN_ID.match(name) or ids[name] > 1 or "servers" in operation or "servers" in item:
                continue
            try:
                read = self.operation(method, path, self.json_first(operation), self.file, (item.get("parameters"), self.file))
            except (KeyError, TypeError, RecursionError, StopIteration, AttributeError):
                self.passed_over += 1
                continue
            if self.is_known(read):
                found.append(read)
            else:
                self.passed_over += 1
        return found

    def json_first(self, operation: dict) -> dict:
        """If a body has several types, Shoal uses JSON."""
        if not operation.get("requestBody"):
            return operation
        body, _ = self.resolve(operation["requestBody"])
        content = sorted(body["content"].items(), key=lambda one: "json" not in one[0])
        return {**operation, "requestBody": {**body, "content": dict(content)}}

    def is_known(self, operation: Operation) -> bool:
        operation.parameters = [
            parameter for parameter in operation.parameters
            if (parameter.name.lower(), parameter.location) not in self.keys
            and not (parameter.location == "header" and parameter.name.lower() in HEADERS)
        ]
        in_path = re.findall(r"\{([^{}]+)\}", operation.path)
        named = [parameter.name for parameter in operation.parameters if parameter.location == "path"]
        if sorted(in_path) != sorted(named) or "?" in operation.path or "#" in operation.path:
            return False
        for parameter in operation.parameters:
            sent_only(parameter.schema)
        if operation.body is None:
            return True
        sent_only(operation.body.schema)
        schema = operation.body.schema
        return (
            operation.body.media == "application/json" and bool(schema.get("properties")) and schema.get("type", "object") == "object"
            and not ({"oneOf", "anyOf", "not"} & set(schema))
        )


def sent_only(schema: dict) -> None:
    """Removes read-only properties, and makes objects explicit."""
    properties = schema.get("properties") or {}
    if properties:
        schema.setdefault("type", "object")
    schema["properties"] = {name: of for name, of in properties.items() if not of.get("readOnly")}
    for of in schema["properties"].values():
        sent_only(of)
    if isinstance(schema.get("items"), dict):
        sent_only(schema["items"])


class Beside:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.count = Counter()
        self.reasons = Counter()

    def batch(self, files: dict[str, Path], recorder: Recorder) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            config = Path(scratch) / "shoal.toml"
            config.write_text("[catalog]\nvalidate_arguments = false\n" + "".join(
                f'[pools.p{at}]\nprefix = "p{at}-"\nbackend = {{ openapi = {{ document = "{file}", base_url = "{recorder.url}" }} }}\n'
                for at, file in enumerate(files.values())
            ))
            with Shoal(self.options.shoal, None, "", "--config", str(config)) as shoal:
                tools = shoal.tools()
                for at, (name, file) in enumerate(files.items()):
                    own = {tool[len(f"p{at}-"):]: of for tool, of in tools.items() if tool.startswith(f"p{at}-")}
                    self.document(shoal, name, Vendor(file), own, recorder)

    def document(self, shoal: Shoal, name: str, document: Vendor, tools: dict, recorder: Recorder) -> None:
        self.count["documents"] += 1
        self.count["tools"] += len(tools)
        try:
            other = FastMcp(document, recorder.url)
        except Exception as error:  # noqa: BLE001 - whatever it is, FastMCP serves nothing
            self.count["FastMCP cannot read"] += 1
            print(f"  {name}: {len(tools)} tools, FastMCP cannot read it: {type(error).__name__}", flush=True)
            other = None
        theirs = other.tools if other else {}
        self.count["FastMCP's tools"] += len(theirs)
        if len(theirs) > len(tools):
            self.wrong(f"{name}: {len(tools)} tools, FastMCP {len(theirs)}")
        rng = random.Random(f"{self.options.seed} {name}")
        for operation in document.some(rng, self.options.calls):
            if operation.id in tools:
                self.call(shoal, f"{name} {operation.id}", tools[operation.id], operation, rng, recorder, other)
        self.count["operations passed over"] += document.passed_over
        if other:
            other.close()

    def call(self, shoal: Shoal, name: str, tool: dict, operation: Operation, rng: random.Random, recorder: Recorder, other: FastMcp | None) -> None:
        given, body = arguments(rng, operation)
        wanted = expected(operation, given, body)
        made = shaped(tool, operation, given, body)
        why = shoal.call(tool["name"], made)
        request = recorder.take()
        self.count["calls"] += 1
        found = differences(request, wanted)
        if found or why:
            return self.wrong(f"{name} {json.dumps(made)[:300]}: {'; '.join(found)[:600]}{f' ({why})' if why else ''}")
        if other is None or operation.id not in other.tools:
            return None
        try:
            other.call(operation.id, shaped(other.tools[operation.id], operation, given, body))
            refused = None
        except Exception as error:  # noqa: BLE001 - of the answer, where there was a request
            refused = f"refused: {type(error).__name__}"
        theirs = recorder.take()
        theirs = [refused] if refused and theirs is None else differences(theirs, wanted)
        self.count["the same" if not theirs else "FastMCP differs from the specification"] += 1
        for difference in theirs:
            reason = difference.partition(":")[0]
            self.reasons[reason] += 1
            if self.reasons[reason] <= SHOWN:
                print(f"  FastMCP: {name} {json.dumps(made)[:200]}: {difference[:300]}", flush=True)
        return None

    def wrong(self, why: str) -> None:
        self.count["wrong"] += 1
        print(f"WRONG {why}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--shoal", required=True)
    parser.add_argument("--home", required=True, type=Path)
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--calls", type=int, default=5, help="calls of each document")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    fit = {name: file for name, file in install(options.home).items() if file.suffix == ".json" and 2_000 < file.stat().st_size < LARGEST}
    chosen = random.Random(options.seed).sample(sorted(fit), options.documents)
    beside = Beside(options)
    with Recorder() as recorder:
        for at in range(0, len(chosen), BATCH):
            beside.batch({name: fit[name] for name in chosen[at : at + BATCH]}, recorder)
            print(dict(beside.count), dict(beside.reasons), flush=True)
    return 1 if beside.count["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
