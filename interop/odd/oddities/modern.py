"""Oddities of servers of 2026-07-28 in that revision's own members and methods."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from plain import CACHED, LEGACY, MODERN, REVISION, SERVER_INFO, SUBSCRIPTION_ID, Json, Plain, Refused


class _Modern(Plain):
    eras = (MODERN,)


class _Completed(_Modern):
    """Members of all results are replaced; `...` leaves one out."""

    members: ClassVar[Json] = {}

    def complete(self, method: str, result: Json) -> Json:
        whole = {**super().complete(method, result), **{name: value for name, value in self.members.items() if name != "ttlMs" or method in CACHED}}
        return {name: value for name, value in whole.items() if value is not ...}


class ResultTypeMissing(_Completed):
    """Results have no `resultType`."""

    members = {"resultType": ...}


class ResultTypeNull(_Completed):
    """`resultType` is null."""

    members = {"resultType": None}


class ResultTypeUnknown(_Completed):
    """`resultType` is unknown."""

    members = {"resultType": "final"}


class ResultTypeUpperCase(_Completed):
    """`resultType` is in upper case."""

    members = {"resultType": "COMPLETE"}


class CacheMissing(_Completed):
    """Results say nothing of caches."""

    members = {"ttlMs": ..., "cacheScope": ...}


class TtlNegative(_Completed):
    """`ttlMs` is negative."""

    members = {"ttlMs": -1}


class TtlNull(_Completed):
    """`ttlMs` and `cacheScope` are null."""

    members = {"ttlMs": None, "cacheScope": None}


class TtlFraction(_Completed):
    """`ttlMs` is a fraction."""

    members = {"ttlMs": 0.5}


class TtlText(_Completed):
    """`ttlMs` is a text."""

    members = {"ttlMs": "60000"}


class TtlHuge(_Completed):
    """`ttlMs` is a number that no clock reaches."""

    members = {"ttlMs": 2**63}


class CacheScopeUnknown(_Completed):
    """`cacheScope` is unknown."""

    members = {"cacheScope": "shared"}


class CacheScopeEverywhere(_Completed):
    """All results have members for caches."""

    def complete(self, method: str, result: Json) -> Json:
        return {**super().complete(method, result), "ttlMs": 60_000, "cacheScope": "public"}


class MetaMissing(_Completed):
    """Results have no `_meta`."""

    members = {"_meta": ...}


class MetaOfResultsNull(_Completed):
    """`_meta` of all results is null."""

    members = {"_meta": None}


class MetaInfoText(_Completed):
    """`serverInfo` in `_meta` is a text."""

    members = {"_meta": {SERVER_INFO: "odd 1"}}


class MetaInfoWithoutVersion(_Completed):
    """`serverInfo` in `_meta` has no version."""

    members = {"_meta": {SERVER_INFO: {"name": "odd"}}}


class _Discovered(_Modern):
    """Members of the answer to `server/discover` are replaced; `...` leaves one out."""

    members: ClassVar[Json] = {}

    def discover(self) -> Json:
        whole = {**super().discover(), **self.members}
        return {name: value for name, value in whole.items() if value is not ...}


class DiscoverInfoAtRoot(_Discovered):
    """`serverInfo` stands beside `capabilities`, as in drafts."""

    members = {"serverInfo": {"name": "odd", "version": "1"}}

    def complete(self, method: str, result: Json) -> Json:
        return {**super().complete(method, result), "_meta": {}}


class DiscoverVersionsMore(_Discovered):
    """`supportedVersions` has versions of all eras, drafts and future ones."""

    members = {"supportedVersions": ["2030-01-01", "DRAFT-2026-v1", REVISION, "2025-11-25", ""]}


class DiscoverVersionsMissing(_Discovered):
    """There are no `supportedVersions`."""

    members = {"supportedVersions": ...}


class DiscoverVersionsText(_Discovered):
    """`supportedVersions` is a text."""

    members = {"supportedVersions": REVISION}


class DiscoverVersionsEmpty(_Discovered):
    """`supportedVersions` is empty."""

    members = {"supportedVersions": []}


class DiscoverVersionsMixed(_Discovered):
    """`supportedVersions` has a number and null."""

    members = {"supportedVersions": [REVISION, 1, None]}


class DiscoverCapabilitiesMissing(_Discovered):
    """There are no `capabilities`."""

    members = {"capabilities": ...}


class DiscoverMembers(_Discovered):
    """The answer to `server/discover` has members of `initialize` and others."""

    members = {"protocolVersion": REVISION, "endpoints": [], "extensions": {}, "instructions": ""}


class DiscoverExtensionsOdd(_Discovered):
    """Unknown extensions are declared, with settings of all kinds."""

    members = {"capabilities": {"tools": {}, "resources": {}, "prompts": {}, "extensions": {"com.example/odd": True, "x": None}}}


class DiscoverUnknown(_Modern):
    """`server/discover` is an unknown method, and so is `initialize`; all else is served."""

    def discover(self) -> Json:
        raise Refused(-32601, "Method not found")


class InitializeBoth(_Modern):
    """`initialize` is answered too, and then all as in 2025-11-25."""

    spoken = MODERN

    def result(self, method: str, params: Json) -> Any:
        if method == "initialize":
            self.spoken = LEGACY
            return self.initialize(params)
        if method == "ping":
            return {}
        return super().result(method, params)

    def complete(self, method: str, result: Json) -> Json:
        return result if self.spoken == LEGACY and method != "server/discover" else super().complete(method, result)


class InitializeUnsupported(_Modern):
    """`initialize` is refused as an unsupported version."""

    def result(self, method: str, params: Json) -> Any:
        if method == "initialize":
            raise Refused(-32022, "Unsupported protocol version", supported=[REVISION], requested=params["protocolVersion"])
        return super().result(method, params)


class InitializeInvalid(_Modern):
    """`initialize` is refused, since it lacks `_meta`."""

    def result(self, method: str, params: Json) -> Any:
        if method == "initialize":
            raise Refused(-32602, "Missing _meta: io.modelcontextprotocol/protocolVersion")
        return super().result(method, params)


class InitializeSilent(_Modern):
    """`initialize` has no answer."""

    transports = ("stdio",)

    def result(self, method: str, params: Json) -> Any:
        return None if method == "initialize" else super().result(method, params)


class InitializeDeadly(_Modern):
    """The server dies of `initialize`."""

    transports = ("stdio",)

    def result(self, method: str, params: Json) -> Any:
        if method == "initialize":
            os._exit(1)
        return super().result(method, params)


class ListenEnds(_Modern):
    """`subscriptions/listen` ends at once, as it should end."""

    watched = True

    def acknowledged(self, message: Json) -> list[Json]:
        over = {"resultType": "complete", "_meta": {SUBSCRIPTION_ID: message["id"]}}
        return [*super().acknowledged(message), {"jsonrpc": "2.0", "id": message["id"], "result": over}]


class ListenEmpty(_Modern):
    """`subscriptions/listen` is answered with `{}`, without an acknowledgment."""

    watched = True

    def acknowledged(self, message: Json) -> list[Json]:
        return [{"jsonrpc": "2.0", "id": message["id"], "result": {}}]


class ListenUnknown(_Modern):
    """`subscriptions/listen` is an unknown method."""

    watched = True

    def acknowledged(self, message: Json) -> list[Json]:
        return [{"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "Method not found"}}]


class ListenSilent(_Modern):
    """Subscriptions are not acknowledged."""

    transports = ("stdio",)

    def acknowledged(self, message: Json) -> list[Json]:
        return []


class ListenOfNothing(_Modern):
    """Subscriptions are acknowledged without what was asked for."""

    def acknowledged(self, message: Json) -> list[Json]:
        params = {"_meta": {SUBSCRIPTION_ID: str(message["id"])}, "notifications": {}}
        return [{"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params}]


class ListenChanges(_Modern):
    """A subscription tells of a change at once, ahead of its acknowledgment."""

    watched = True

    def acknowledged(self, message: Json) -> list[Json]:
        changed = {"_meta": {SUBSCRIPTION_ID: message["id"]}}
        return [{"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": changed}, *super().acknowledged(message)]


class RequestsOfModern(_Modern):
    """The server sends requests, which this revision does not have."""

    def before(self, message: Json) -> list[Json]:
        return [{"jsonrpc": "2.0", "id": f"s{message['id']}{method}", "method": method} for method in ("ping", "roots/list")]


class CodesOfLegacy(_Modern):
    """Unknown things are reported with codes of earlier revisions."""

    def prompts(self) -> Any:
        raise Refused(-32002, "unknown")

    def templates(self) -> Any:
        raise Refused(-32000, "unknown")
