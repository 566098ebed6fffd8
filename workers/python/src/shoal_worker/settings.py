"""A worker's limits and certificate."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc


@dataclass(frozen=True)
class Limits:
    """Bounds a worker's calls and memory."""

    concurrency: int = 128
    """Calls that run at once."""
    queue: int = 1024
    """Calls that may wait for a place; more are refused."""
    queue_seconds: float = 5.0
    """How long a call may wait before it is shed."""
    asking: int = 1024
    """Calls that may wait for answers of their clients. They have no place meanwhile."""
    asking_per_principal: int = 256
    """Calls of one principal that may."""
    kept_seconds: float = 60.0
    """How long the events of a call that has ended can be attached to."""
    kept_calls: int = 10_000
    """How many calls that have ended are kept."""
    kept_bytes: int = 64 * 1024 * 1024
    """How many bytes of them."""
    remembered_calls: int = 100_000
    """Ids of calls that must not run again, after their results are gone."""
    cancel_seconds: float = 5.0
    """How long a tool that was told to stop keeps its place, at most."""
    deserted_seconds: float = 10.0
    """How long a call without a session goes on while nobody reads it."""
    frame_bytes: int = 16 * 1024 * 1024
    """The longest frame that is accepted."""


@dataclass(frozen=True)
class Tls:
    """The files of a worker's certificate, which are read for each link."""

    certificate: str
    key: str
    authority: str
    name: str = "shoal"
    """The name that nodes' certificates have (`cluster.tls.name`)."""

    @classmethod
    def from_environment(cls) -> Tls | None:
        """Reads SHOAL_TLS_CERTIFICATE, _KEY, _AUTHORITY and _NAME, as the chart sets them. `None` without any of the
        files.

        Raises `ValueError` if only some are set, because a misspelt name must not lead to plaintext.
        """
        names = [f"SHOAL_TLS_{name}" for name in ("CERTIFICATE", "KEY", "AUTHORITY")]
        files = {name: os.environ.get(name) or "" for name in names}
        missing = [name for name, file in files.items() if not file]
        if len(missing) == len(names):
            return None
        if missing:
            raise ValueError(f"TLS needs a certificate, a key and an authority; not set: {', '.join(missing)}")
        return cls(*files.values(), os.environ.get("SHOAL_TLS_NAME") or "shoal")

    def check(self) -> None:
        """Raises `OSError` (`ssl.SSLError` is one) if the files cannot be used. gRPC itself would retry forever in
        silence.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_cert_chain(self.certificate, self.key)
        context.load_verify_locations(self.authority)

    def credentials(self) -> grpc.ChannelCredentials:
        read = [Path(file).read_bytes() for file in (self.authority, self.key, self.certificate)]
        return grpc.ssl_channel_credentials(*read)
