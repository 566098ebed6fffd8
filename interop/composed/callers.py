"""Clients on official SDKs that call tools on command: programs of `interop/python` and `interop/typescript`."""

from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VERSIONS = {"legacy": "2025-11-25", "modern": "2026-07-28"}
LINE_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True)
class Answer:
    """The outcome of a call: a text, or an error's code and message."""

    text: str | None
    code: int | None
    message: str

    def holds(self, part: str) -> bool:
        return self.text is not None and part in self.text


class Caller:
    """A client that stays connected to one edge."""

    def __init__(self, name: str, era: str, process: asyncio.subprocess.Process) -> None:
        self.name, self.era = name, era
        self._process = process
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._reader: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, words: list[str], name: str, era: str, url: str, log: Path) -> Caller:
        with log.open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *words, "--url", url, "--era", era, stdin=-1, stdout=-1, stderr=errors, limit=LINE_BYTES
            )
        caller = cls(name, era, process)
        assert process.stdout
        first = await process.stdout.readline()
        assert first, f"{name} did not connect: {log.read_text()[-500:]}"
        version = json.loads(first)["version"]
        assert version == VERSIONS[era], f"{name} speaks {version}"
        caller._reader = asyncio.create_task(caller._read())
        return caller

    async def _read(self) -> None:
        assert self._process.stdout
        async for line in self._process.stdout:
            answer = json.loads(line)
            waiting = self._waiting.pop(answer["id"])
            # If the check has failed, the caller is gone.
            if not waiting.done():
                waiting.set_result(answer)
        for left in self._waiting.values():
            if not left.done():
                left.set_exception(AssertionError(f"{self.name} ended"))

    async def _ask(self, **members: Any) -> dict[str, Any]:
        number = next(self._ids)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"id": number} | members).encode() + b"\n")
        return await self._waiting[number]

    async def names(self) -> list[str]:
        answer = await self._ask(list=True)
        assert "names" in answer, f"{self.name}: {answer}"
        return answer["names"]

    async def call(self, tool: str, arguments: dict[str, Any]) -> Answer:
        answer = await self._ask(tool=tool, arguments=arguments)
        if "text" in answer and not answer["failed"]:
            return Answer(answer["text"], None, "")
        return Answer(None, answer.get("code"), answer.get("message") or answer.get("text") or "")

    async def leave(self) -> None:
        """Ends like a client that is done."""
        assert self._process.stdin and self._reader
        self._process.stdin.close()
        status = await self._process.wait()
        assert status == 0, f"{self.name} ended with status {status}"
        await self._reader

    def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
