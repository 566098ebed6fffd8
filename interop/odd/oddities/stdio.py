"""The standard output and standard error of servers."""

from __future__ import annotations

import json
import os
import sys
import time

from plain import Json, Plain


class _Stdio(Plain):
    transports = ("stdio",)


class LinesBefore(_Stdio):
    """Text comes ahead of the first message, as of `console.log`."""

    preamble = b"Azure DevOps MCP Server version : 1.2.0\n\n\xf0\x9f\x96\xa5 Server mode: STDIO\n"


class LinesBetween(_Stdio):
    """Text comes ahead of each message."""

    def line(self, reply: Json) -> bytes:
        return b"[INFO] handling request\n{ metadata: undefined }\n" + super().line(reply)


class LinesOfJson(_Stdio):
    """Lines of a logger come ahead of each message, which are JSON and no messages."""

    def line(self, reply: Json) -> bytes:
        logged: list[object] = [{"level": 30, "time": 1, "msg": "request", "id": 7}, {"id": 1, "method": 5}, [], "text", 5, None]
        return b"".join(json.dumps(each).encode() + b"\n" for each in logged) + super().line(reply)


class LinesBlank(_Stdio):
    """Blank lines come between messages."""

    def line(self, reply: Json) -> bytes:
        return b"\n  \n\r\n" + super().line(reply) + b"\n"


class LinesCrlf(_Stdio):
    """Lines end as on Windows."""

    def line(self, reply: Json) -> bytes:
        return super().line(reply).rstrip(b"\n") + b"\r\n"


class LinesNotUtf8(_Stdio):
    """A line ahead of each message is not UTF-8."""

    def line(self, reply: Json) -> bytes:
        return b"Gr\xfc\xdfe\n" + super().line(reply)


class LineColoured(_Stdio):
    """Text with escape sequences and a carriage return comes ahead of each message."""

    def line(self, reply: Json) -> bytes:
        return b"\x1b[32mready\x1b[0m\r\n\x1b]0;title\x07\n" + super().line(reply)


class BytesOneByOne(_Stdio):
    """Answers are written byte by byte."""

    def line(self, reply: Json) -> bytes:
        whole = super().line(reply)
        for byte in whole[:-1]:
            os.write(1, bytes([byte]))
        return whole[-1:]


class MessagesTogether(_Stdio):
    """An answer and a notification come in one write."""

    def line(self, reply: Json) -> bytes:
        notice = {"jsonrpc": "2.0", "method": "notifications/odd"}
        return super().line(reply) + self.encoded(notice) + b"\n"


class StderrFloods(_Stdio):
    """Each answer comes with 1 MB on standard error."""

    def line(self, reply: Json) -> bytes:
        sys.stderr.write("debug " * 160_000 + "\n")
        return super().line(reply)


class StderrCloses(_Stdio):
    """The server closes its standard error at its start."""

    def __init__(self, era: str) -> None:
        super().__init__(era)
        sys.stderr.close()


class SlowStart(_Stdio):
    """The server starts slowly, and says on standard error that it does, as package managers do."""

    eras = ("legacy",)

    def __init__(self, era: str) -> None:
        super().__init__(era)
        for percent in range(0, 100, 12):
            print(f"fetching: {percent} %", file=sys.stderr, flush=True)
            time.sleep(1)


class EndsAfterCall(_Stdio):
    """The server ends after each call, which it has answered."""

    def line(self, reply: Json) -> bytes:
        if "content" not in (reply.get("result") or {}):
            return super().line(reply)
        sys.stdout.buffer.write(super().line(reply))
        sys.stdout.buffer.flush()
        os._exit(0)
