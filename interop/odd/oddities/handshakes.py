"""How a connection begins."""

from __future__ import annotations

import os
from typing import Any

from plain import Json, Plain, Refused


class RefusesElicitationModes(Plain):
    """`initialize` with members in `elicitation` is refused, as by the Java SDK 0.17.0."""

    eras = ("legacy",)

    def initialize(self, params: Json) -> Json:
        if params["capabilities"].get("elicitation"):
            raise Refused(-32603, 'Unrecognized field "form"')
        return super().initialize(params)


class RefusesElicitation(Plain):
    """`initialize` with `elicitation` is refused."""

    eras = ("legacy",)

    def initialize(self, params: Json) -> Json:
        if "elicitation" in params["capabilities"]:
            raise Refused(-32602, "unknown capability: elicitation")
        return super().initialize(params)


class DiesOfElicitation(Plain):
    """The server dies of `elicitation`."""

    eras = ("legacy",)
    transports = ("stdio",)

    def initialize(self, params: Json) -> Json:
        if "elicitation" in params["capabilities"]:
            os._exit(1)
        return super().initialize(params)


class RefusesNewVersions(Plain):
    """`initialize` with a version after 2025-03-26 is refused."""

    eras = ("legacy",)

    def initialize(self, params: Json) -> Json:
        if params["protocolVersion"] > "2025-03-26":
            raise Refused(-32602, "Unsupported protocol version")
        return super().initialize(params)


class CapabilitiesEmpty(Plain):
    """`capabilities` is `{}`, and there are tools."""

    def capabilities(self) -> Json:
        return {}



class CapabilitiesNull(Plain):
    """Members of `capabilities` are null."""

    def capabilities(self) -> Json:
        return {"tools": None, "resources": None, "prompts": None, "logging": None}


class CapabilitiesFlags(Plain):
    """Members of `capabilities` are booleans."""

    def capabilities(self) -> Json:
        return {"tools": True, "resources": True, "prompts": True}


class CapabilitiesForeign(Plain):
    """`capabilities` has unknown members."""

    def capabilities(self) -> Json:
        return {**super().capabilities(), "odd": {"level": "high"}, "experimental": {"x": {}, "y": {"z": 1}}, "tools": {"description": "All"}}


class InfoMissing(Plain):
    """There is no `serverInfo`."""

    eras = ("legacy",)

    def initialize(self, params: Json) -> Json:
        return {name: value for name, value in super().initialize(params).items() if name != "serverInfo"}


class InfoWithoutVersion(Plain):
    """`serverInfo` has no `version`."""

    def info(self) -> Any:
        return {"name": "odd"}


class InfoNulls(Plain):
    """`serverInfo` has members that are null."""

    def info(self) -> Any:
        return {"name": "odd", "version": "1", "title": None, "icons": None, "websiteUrl": None}


class InfoForeign(Plain):
    """`serverInfo` has an empty name and unknown members."""

    def info(self) -> Any:
        return {"name": "", "version": "", "vendor": {"name": "x"}, "icons": []}


class InstructionsNull(Plain):
    """`instructions` are null."""

    def initialize(self, params: Json) -> Json:
        return {**super().initialize(params), "instructions": None}

    def discover(self) -> Json:
        return {**super().discover(), "instructions": None}


class VersionOld(Plain):
    """Whatever the client's version is, the server's is 2024-11-05."""

    eras = ("legacy",)

    def initialize(self, params: Json) -> Json:
        return {**super().initialize(params), "protocolVersion": "2024-11-05"}


class VersionOldest(Plain):
    """Whatever the client's version is, the server's is 2024-10-07."""

    eras = ("legacy",)

    def initialize(self, params: Json) -> Json:
        return {**super().initialize(params), "protocolVersion": "2024-10-07"}


class VersionMadeUp(Plain):
    """The server's version is unknown."""

    eras = ("legacy",)

    def initialize(self, params: Json) -> Json:
        return {**super().initialize(params), "protocolVersion": "1.0.0"}


class VersionModern(Plain):
    """`initialize` is answered with 2026-07-28, and there is no `server/discover`."""

    eras = ("legacy",)

    def initialize(self, params: Json) -> Json:
        return {**super().initialize(params), "protocolVersion": "2026-07-28"}


class SpeaksFirst(Plain):
    """Notifications come ahead of the answer to the first request."""

    def before(self, message: Json) -> list[Json]:
        if message["method"] not in ("initialize", "server/discover"):
            return []
        log = {"level": "info", "data": "starting"}
        return [
            {"jsonrpc": "2.0", "method": "notifications/message", "params": log},
            {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"},
        ]


class AsksFirst(Plain):
    """The server asks for roots and pings ahead of its answer to `initialize`."""

    eras = ("legacy",)

    def before(self, message: Json) -> list[Json]:
        if message["method"] != "initialize":
            return []
        return [{"jsonrpc": "2.0", "id": f"first{method}", "method": method} for method in ("roots/list", "ping")]


class NoPing(Plain):
    """`ping` is an unknown method."""

    eras = ("legacy",)

    def result(self, method: str, params: Json) -> Any:
        if method == "ping":
            raise Refused(-32601, "Method not found")
        return super().result(method, params)


class NoLevel(Plain):
    """`logging` is declared, and `logging/setLevel` is refused."""

    eras = ("legacy",)

    def capabilities(self) -> Json:
        return {**super().capabilities(), "logging": {}}


class WaitsForInitialized(Plain):
    """Whatever comes before `notifications/initialized` is refused, as by strict SDKs."""

    eras = ("legacy",)
    initialized = False

    def unasked(self, message: Json) -> list[Json]:
        self.initialized = self.initialized or message.get("method") == "notifications/initialized"
        return []

    def result(self, method: str, params: Json) -> Any:
        if method != "initialize" and not self.initialized:
            raise Refused(-32600, "Received request before initialization was complete")
        return super().result(method, params)
