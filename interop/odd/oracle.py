"""Compares what the official Python and TypeScript SDKs' clients get from odd servers directly with what they get through Shoal.

`python oracle.py --shoal PATH [--only ODDITY]… [--transport stdio|http] [--era legacy|modern]`. A cell fails if something is worse through
Shoal than directly, unless accepted.py says why that is so. Directly, a server is driven by clients of its own era.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import logging
import os
import pathlib
import re
import ssl
import sys
import tempfile
import warnings
from collections.abc import AsyncIterator
from dataclasses import dataclass

from accepted import ACCEPTED
from clients_of_sdks import Seen, TypeScript, User, python
from compare import worse
from oddities import ALL
from oddities import rows as driven

HERE = pathlib.Path(__file__).parent
START_SECONDS = 60
WATCHED_SECONDS = 6
MOST_READINGS = 12
"""How often the lists may be read in that time."""
ERAS = ("legacy", "modern")
SDKS = ("python", "typescript")
AT_ONCE = 16


@contextlib.asynccontextmanager
async def process(*words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Runs a program and ends it."""
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    running = await asyncio.create_subprocess_exec(*words, stdin=nothing, stdout=pipe, stderr=nothing)
    try:
        yield running
    finally:
        with contextlib.suppress(ProcessLookupError):
            running.terminate()
        await running.communicate()


async def served(running: asyncio.subprocess.Process) -> str | None:
    """Shoal's URL, once it serves."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(START_SECONDS):
            while line := (await running.stdout.readline()).decode():
                if found := re.match(r"shoal: serving MCP on (http\S+)", line):
                    return found[1]
    return None


@dataclass(frozen=True)
class Servers:
    """How odd servers are started. Thousands are, so their modules are compiled once."""

    directory: pathlib.Path

    @property
    def logs(self) -> pathlib.Path:
        return self.directory / "logs"

    def words(self, program: str, *arguments: str) -> list[str]:
        return [sys.executable, "-E", "-S", "-X", f"pycache_prefix={self.directory / 'compiled'}", str(HERE / program), *arguments]


@dataclass(frozen=True)
class Cell:
    """The view of an era's client through Shoal, and directly."""

    name: str
    verdict: str
    refused: str
    """The steps that fail directly."""

    @property
    def failed(self) -> bool:
        return self.verdict.startswith("FAIL")

    @property
    def told(self) -> str:
        word, _, why = self.verdict.partition(": ")
        return f"{word} {self.name}{f': {why}' if why else ''}" + (f" (directly it fails in: {self.refused})" if self.refused else "")


def trust_one_authority(file: pathlib.Path) -> None:
    """Makes clients and Shoal trust one certificate. Reading those of all authorities takes a Python client most of its processor time."""
    if authorities := ssl.create_default_context().get_ca_certs(binary_form=True):
        file.write_text(ssl.DER_cert_to_PEM_cert(authorities[0]))
        os.environ |= {"SSL_CERT_FILE": str(file), "SSL_CERT_DIR": ""}


def judged(oddity: str, against: list[tuple[str, str]]) -> str:
    """`ok`, or what is worse, and why it is accepted."""
    accepted = ACCEPTED.get(oddity)
    if accepted and against and all(step in accepted.steps for step, _ in against):
        return f"skip: {accepted.reason}"
    return f"FAIL: {'; '.join(f'{step}: {how}' for step, how in against)[:400]}" if against else "ok"


def reported(cells: list[Cell]) -> list[Cell]:
    for cell in cells:
        print(cell.told, flush=True)
    return cells


class Oracle:
    """Runs rows: an oddity, over a transport, with a server of an era."""

    def __init__(self, shoal: str, servers: Servers, port: str, typescript: TypeScript) -> None:
        self._shoal = shoal
        self._servers = servers
        self._port = port
        self._typescript = typescript
        self._runs = itertools.count()

    async def row(self, oddity: str, transport: str, era: str) -> list[Cell]:
        direct, through = await asyncio.gather(self._directly(oddity, transport, era), self._through(oddity, transport, era))
        cells = []
        for (sdk, client_era), seen in through.items():
            verdict = judged(oddity, worse({**direct[sdk], **ALL[oddity].expected}, seen))
            refused = ", ".join(step for step, got in direct[sdk].items() if isinstance(got, Exception))
            cells.append(Cell(f"{oddity}, {transport}, {era} server, {sdk}, {client_era}", verdict, refused))
        return cells

    async def _client(self, sdk: str, words: list[str], era: str, oddity: str) -> Seen:
        run = python if sdk == "python" else self._typescript.run
        return await run(words, era, User(ALL[oddity].asks, ALL[oddity].withdraws))

    async def _directly(self, oddity: str, transport: str, era: str) -> dict[str, Seen]:
        clients = (self._client(sdk, self._words(oddity, transport, era)[0], era, oddity) for sdk in SDKS)
        return dict(zip(SDKS, await asyncio.gather(*clients), strict=True))

    async def _through(self, oddity: str, transport: str, era: str) -> dict[tuple[str, str], Seen]:
        words, log = self._words(oddity, transport, era)
        everybody = list(itertools.product(SDKS, ERAS))
        given = words if transport == "http" else ["--", *words]
        async with process(self._shoal, "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", *given) as running:
            url = await served(running)
            if url is None:
                return {who: {"connect": RuntimeError("Shoal does not start")} for who in everybody}
            found = {(sdk, client_era): await self._client(sdk, [url], client_era, oddity) for sdk, client_era in everybody}
            if ALL[oddity].watched:
                await asyncio.sleep(WATCHED_SECONDS)
                readings = log.read_text().split().count("tools/list")
                found[everybody[0]]["quiet"] = readings <= MOST_READINGS or RuntimeError(f"{readings} readings")
            return found

    def _words(self, oddity: str, transport: str, era: str) -> tuple[list[str], pathlib.Path]:
        """The URL or the command of a separate server, and its record."""
        run = f"run{next(self._runs)}"
        log = self._servers.logs / run
        if transport == "http":
            return [f"http://127.0.0.1:{self._port}/{run}/{oddity}/{era}/mcp"], log
        return self._servers.words("server.py", oddity, era, str(log)), log


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shoal", required=True)
    parser.add_argument("--only", action="append", default=[], choices=sorted(ALL))
    parser.add_argument("--transport", choices=("stdio", "http"))
    parser.add_argument("--era", choices=ERAS)
    args = parser.parse_args()
    limit = asyncio.Semaphore(AT_ONCE)
    rows = [
        (oddity, transport, era)
        for oddity, kind in ALL.items()
        for transport, era in driven(kind)
        if (not args.only or oddity in args.only) and args.transport in (None, transport) and args.era in (None, era)
    ]
    cells: list[Cell] = []
    with tempfile.TemporaryDirectory() as directory:
        servers = Servers(pathlib.Path(directory))
        servers.logs.mkdir()
        trust_one_authority(servers.directory / "authority.pem")
        async with process(*servers.words("over_http.py", str(servers.logs))) as server, TypeScript() as typescript:
            port = (await server.stdout.readline()).decode().strip()
            oracle = Oracle(args.shoal, servers, port, typescript)

            async def limited(row: tuple[str, str, str]) -> list[Cell]:
                async with limit:
                    return await oracle.row(*row)

            repeated = []
            for row, task in [(row, asyncio.create_task(limited(row))) for row in rows]:
                if any(cell.failed for cell in await task):
                    repeated.append(row)
                else:
                    cells += reported(task.result())
            # A failure caused by a busy machine passes when the row runs alone.
            for row in repeated:
                cells += reported(await oracle.row(*row))
    failed = sum(cell.failed for cell in cells)
    accepted = sum(cell.verdict.startswith("skip") for cell in cells)
    print(f"{len({row[0] for row in rows})} oddities, {len(cells)} cells, {accepted} accepted, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    logging.disable()
    warnings.simplefilter("ignore")
    sys.exit(asyncio.run(main()))
