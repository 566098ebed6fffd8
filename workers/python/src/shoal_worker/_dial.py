"""Keeps one link to each node. Nodes report other nodes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ._link import Link

if TYPE_CHECKING:
    from ._proto.shoal.types.v1 import link_pb2
    from ._runtime import Runtime
    from .settings import Tls

log = logging.getLogger("shoal_worker")

LOOK_SECONDS = 1.0
RESEED_SECONDS = 5.0
"""How long no node can be reached before the seeds are tried again."""
LEAVE_LOOK_SECONDS = 0.05
LAST_WORDS_SECONDS = 3.0


class Dialer:
    """Keeps a worker joined to every node."""

    def __init__(self, runtime: Runtime, seeds: list[str], tls: Tls | None) -> None:
        self._runtime, self._seeds, self._tls = runtime, seeds, tls
        self._links: dict[str, tuple[Link, asyncio.Task[None]]] = {}
        self._alone_since = -RESEED_SECONDS

    async def run(self) -> None:
        """Follows the nodes' reports."""
        changed = self._runtime.links_changed
        try:
            while True:
                changed.clear()
                self._revise(asyncio.get_running_loop().time())
                try:
                    await asyncio.wait_for(changed.wait(), LOOK_SECONDS)
                except asyncio.TimeoutError:
                    pass
        finally:
            tasks = [task for _, task in self._links.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _revise(self, now: float) -> None:
        up = [link for link, _ in self._links.values() if link.connected]
        if not up:
            if now - self._alone_since >= RESEED_SECONDS:
                self._alone_since = now
                for seed in self._seeds:
                    self._dial(seed)
            return
        self._alone_since = now
        told: dict[str, link_pb2.Node] = {}
        for link in up:
            told |= {node.id: node for node in link.nodes if node.edge or node.session}
        own = {node.address for node in told.values()}
        # A second link replaces the first at its node, so a node's own address comes before seeds that lead to it.
        linked: set[str | None] = set()
        for link in sorted(up, key=lambda link: link.address not in own):
            if link.node in linked:
                self._hang_up(link.address)
            linked.add(link.node)
        for address, (link, _) in list(self._links.items()):
            if not link.connected and address not in own:
                self._hang_up(address)
        for node in told.values():
            if node.id not in linked and node.address and not node.draining:
                self._dial(node.address)

    def _dial(self, address: str) -> None:
        if address not in self._links:
            link = Link(self._runtime, address, self._tls)
            self._links[address] = link, asyncio.create_task(link.run())

    def _hang_up(self, address: str) -> None:
        _, task = self._links.pop(address)
        task.cancel()

    async def _tell(self, what: Callable[[Link], Awaitable[None]]) -> None:
        """Sends something to every node at the same time, so that a slow one delays no other."""
        told = [asyncio.create_task(what(link)) for link, _ in self._links.values() if link.connected]
        if told:
            _, late = await asyncio.wait(told, timeout=LAST_WORDS_SECONDS)
            for task in late:
                task.cancel()

    async def leave(self, seconds: float) -> None:
        """Lets calls finish for a while, says goodbye to every node and waits for the answers."""
        runtime = self._runtime
        runtime.draining = True
        deadline = asyncio.get_running_loop().time() + seconds
        await self._tell(Link.announce)
        while runtime.open_calls() > 0 or any(link.is_read() for link, _ in self._links.values()):
            if asyncio.get_running_loop().time() >= deadline:
                log.warning("stopping %d calls that did not end in time", runtime.open_calls())
                runtime.stop_all()
                break
            await asyncio.sleep(LEAVE_LOOK_SECONDS)
        links = [(link, task) for link, task in self._links.values() if link.connected]
        await self._tell(Link.part)
        if links:
            await asyncio.wait([task for _, task in links], timeout=LAST_WORDS_SECONDS)
