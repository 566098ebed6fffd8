"""Questions that servers with sessions ask while they answer, and take back."""

from __future__ import annotations

import time
from collections.abc import Iterator

from plain import CHANGE_OF_MIND_SECONDS, QUESTION, Json, Plain, Talks

SAMPLING: Json = {"messages": [{"role": "user", "content": {"type": "text", "text": "Hello"}}], "maxTokens": 5}


class _AsksInCall(Talks):
    waits = ("tools/call",)
    method = QUESTION["method"]
    params: Json | None = QUESTION["params"]


class _TakesBack(_AsksInCall):
    """A tool asks, takes its question back, and ends."""

    withdraws = True

    def cancel(self, name: str) -> Json:
        return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": name, "reason": "no more"}}

    def talk(self, message: Json) -> Iterator[Json]:
        name = f"q{message['id']}"
        yield self.ask(name, self.method, self.params)
        time.sleep(CHANGE_OF_MIND_SECONDS)
        yield self.cancel(name)
        time.sleep(CHANGE_OF_MIND_SECONDS)
        yield from super().talk(message)


class TakesBackElicitation(_TakesBack):
    """A tool takes its elicitation back."""


class TakesBackSampling(_TakesBack):
    """A tool takes back what it asks a model."""

    method = "sampling/createMessage"
    params = SAMPLING


class TakesBackRoots(_TakesBack):
    """A tool takes its question for roots back."""

    method = "roots/list"
    params = None


class TakesBackWithoutReason(_TakesBack):
    """A tool takes its elicitation back and gives no reason."""

    def cancel(self, name: str) -> Json:
        return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": name}}


class TakesBackAndAsksAgain(_TakesBack):
    """A tool takes its elicitation back, and asks for something else."""

    def talk(self, message: Json) -> Iterator[Json]:
        yield self.ask("first", self.method, self.params)
        time.sleep(CHANGE_OF_MIND_SECONDS)
        yield self.cancel("first")
        yield self.ask("second", "roots/list")
        self.answer_to("second")
        yield from super(_TakesBack, self).talk(message)


class _AsksForRoots(Talks):
    """A list is answered once the client has told its roots, if it declares any."""

    def talk(self, message: Json) -> Iterator[Json]:
        name = f"q{message['id']}"
        if "roots" in self.declared:
            yield self.ask(name, "roots/list")
            if "result" not in (self.answer_to(name) or {}):
                yield {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32603, "message": "no roots"}}
                return
        yield from super().talk(message)


class RootsForTools(_AsksForRoots):
    """The server asks for roots while it lists its tools."""

    waits = ("tools/list",)


class RootsForAllLists(_AsksForRoots):
    """The server asks for roots in each list."""

    waits = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")


class RootsForReading(_AsksForRoots):
    """The server asks for roots when a resource is read or a prompt is had."""

    waits = ("resources/read", "prompts/get")


class RootsForCall(_AsksForRoots):
    """The server asks for roots in a call."""

    waits = ("tools/call",)


class AsksForAllLists(Talks):
    """The server asks its user while it lists its tools, and lists them whatever comes."""

    waits = ("tools/list",)

    def talk(self, message: Json) -> Iterator[Json]:
        if "elicitation" in self.declared:
            name = f"q{message['id']}"
            yield self.ask(name, QUESTION["method"], QUESTION["params"])
            self.answer_to(name)
        yield from super().talk(message)


class _WantsAnswer(Talks):
    """An answer comes once the client has answered what the server asks."""

    waits = ("tools/call",)

    def questions(self, message: Json) -> list[Json]:
        return []

    def talk(self, message: Json) -> Iterator[Json]:
        for question in self.questions(message):
            yield question
        for question in self.questions(message):
            if "result" not in (self.answer_to(question["id"]) or {}):
                yield {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32603, "message": "no answer"}}
                return
        yield from super().talk(message)


class PingsInCall(_WantsAnswer):
    """A call goes on once the client has answered a ping."""

    def questions(self, message: Json) -> list[Json]:
        return [self.ask(f"ping{message['id']}", "ping")]


class PingsInLists(PingsInCall):
    """Lists are answered once the client has answered a ping."""

    waits = ("tools/list", "prompts/list", "resources/list")


class AsksByIdOfRequest(_WantsAnswer):
    """A question has the id of the request that it is asked in: each side counts for itself."""

    def questions(self, message: Json) -> list[Json]:
        return [{**self.ask("", QUESTION["method"], QUESTION["params"]), "id": message["id"]}]


class AsksByIdZero(_WantsAnswer):
    """A question has the id 0."""

    def questions(self, message: Json) -> list[Json]:
        return [{**self.ask("", QUESTION["method"], QUESTION["params"]), "id": 0}]


class AsksTwoAtOnce(_WantsAnswer):
    """A call asks two things at once."""

    def questions(self, message: Json) -> list[Json]:
        return [self.ask("user", QUESTION["method"], QUESTION["params"]), self.ask("model", "sampling/createMessage", SAMPLING)]


class AsksInReading(AsksByIdZero):
    """Reading a resource and having a prompt ask the user."""

    waits = ("resources/read", "prompts/get")


class AsksForNestedForm(_WantsAnswer):
    """A form has an object within, and keywords that forms do not have."""

    def questions(self, message: Json) -> list[Json]:
        colour = {"type": "object", "properties": {"name": {"type": "string", "x-order": 1}}, "additionalProperties": False}
        schema = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"colour": colour}}
        return [self.ask("form", QUESTION["method"], {**QUESTION["params"], "requestedSchema": schema})]


class ProgressAfterAnswer(Plain):
    """Progress of a request comes behind its answer."""

    eras = ("legacy",)

    def answer(self, message: Json) -> Json | None:
        self.token = (message.get("params") or {}).get("_meta", {}).get("progressToken", message["id"])
        return super().answer(message)

    def after(self, method: str) -> list[Json]:
        params = {"progressToken": self.token, "progress": 1, "total": 1}
        return [{"jsonrpc": "2.0", "method": "notifications/progress", "params": params}]
