"""Installs servers with the ordinary client of their registry, each once."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import pathlib

from servers import Server

INSTALL_SECONDS = 600
HERE = pathlib.Path(__file__).parent


@dataclasses.dataclass(frozen=True)
class Installed:
    """A server that can be started."""

    version: str
    program: tuple[str, ...]
    """The words before the arguments."""
    replaces: bool
    """Whether they stand for the first word of the server's command."""


class Registries:
    """The sources of servers."""

    def __init__(self, tools: pathlib.Path) -> None:
        self.tools = tools.resolve()

    async def install(self, server: Server) -> Installed:
        """Installs the newest version, unless one is installed."""
        self.tools.mkdir(parents=True, exist_ok=True)
        return await getattr(self, f"_{server.registry}")(server)

    async def _npm(self, server: Server) -> Installed:
        place = self.tools / server.package.replace("/", "-").lstrip("@")
        package = place / "node_modules" / server.package / "package.json"
        if not package.exists():
            # Without scripts, because some fetch a browser.
            await said("npm", "install", "--prefix", str(place), "--no-audit", "--no-fund", "--ignore-scripts", server.package)
        version = json.loads(package.read_text())["version"]
        return Installed(version, (str(place / "node_modules" / ".bin" / server.command[0]),), replaces=True)

    async def _pypi(self, server: Server) -> Installed:
        place = self.tools / server.package
        python = place / "bin" / "python"
        if not (place / "bin" / server.command[0]).exists() or server.command[0] == "python":
            await said("python3", "-m", "venv", str(place))
            await said(str(python), "-m", "pip", "install", "--quiet", server.package)
        ask = f"import importlib.metadata; print(importlib.metadata.version({server.package!r}))"
        version = await said(str(python), "-c", ask)
        return Installed(version.strip(), (str(place / "bin" / server.command[0]),), replaces=True)

    async def _go(self, server: Server) -> Installed:
        source, program = HERE.parent / "go", self.tools / server.command[0]
        await said("go", "build", "-o", str(program), "./anything", cwd=source)
        version = await said("go", "list", "-m", "-f", "{{.Version}}", server.package, cwd=source)
        return Installed(version.strip(), (str(program),), replaces=True)

    async def _java(self, server: Server) -> Installed:
        version = server.command[0]
        place = self.tools / f"java-{version}"
        if not (place / "classes").exists():
            pom = HERE.parent / "java-server" / "pom.xml"
            mvn = ("mvn", "--quiet", "--batch-mode", "--file", str(pom), f"-Dmcp.version={version}", f"-Dbuild.into={place}")
            goals = ("compile", "dependency:copy-dependencies", f"-DoutputDirectory={place}/dependency")
            await said(*mvn, *goals)
        return Installed(version, ("java", "-cp", f"{place}/classes:{place}/dependency/*", "shoal.interop.Server"), replaces=True)


async def said(*words: str, cwd: pathlib.Path | None = None) -> str:
    """Runs a program that must succeed; returns its output."""
    pipe = asyncio.subprocess.PIPE
    running = await asyncio.create_subprocess_exec(*words, cwd=cwd, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe)
    async with asyncio.timeout(INSTALL_SECONDS):
        out, err = await running.communicate()
    if running.returncode:
        raise RuntimeError(f"{words[0]} fails: {err.decode(errors='replace')}{out.decode(errors='replace')}")
    return out.decode()
