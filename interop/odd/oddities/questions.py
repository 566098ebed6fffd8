"""How servers of 2026-07-28 ask by their results."""

from __future__ import annotations

from typing import Any

from plain import FAILS, MODERN, QUESTION, Json, Plain


class _Asks(Plain):
    """The tool asks, and tells what it was answered."""

    eras = (MODERN,)
    asks = True

    def asked(self) -> Json:
        return {"inputRequests": {"colour": QUESTION}, "requestState": "first"}

    def called(self, params: Json) -> Any:
        answers = params.get("inputResponses")
        if not answers:
            return {"resultType": "input_required", **self.asked()}
        return {"content": [{"type": "text", "text": self.told(answers, params)}]}

    def told(self, answers: Json, params: Json) -> str:
        return f"{answers['colour']['content']['colour']}, {params.get('requestState')}"


class Asks(_Asks):
    """The tool asks once."""


class AsksWithoutState(_Asks):
    """There is no `requestState`."""

    def asked(self) -> Json:
        return {"inputRequests": {"colour": QUESTION}}


class AsksWithStateEmpty(_Asks):
    """`requestState` is empty."""

    def asked(self) -> Json:
        return {**super().asked(), "requestState": ""}


class AsksWithStateNull(_Asks):
    """`requestState` is null."""

    def asked(self) -> Json:
        return {**super().asked(), "requestState": None}


class AsksWithStateLarge(_Asks):
    """`requestState` has 20,000 characters."""

    def asked(self) -> Json:
        return {**super().asked(), "requestState": "x" * 20_000}

    def told(self, answers: Json, params: Json) -> str:
        return str(len(params["requestState"]))


class AsksWithStateObject(_Asks):
    """`requestState` is an object."""

    def asked(self) -> Json:
        return {**super().asked(), "requestState": {"step": 1}}


class AsksWithStateAlone(_Asks):
    """The first answer has a state and no question: the client is to come again."""

    def called(self, params: Json) -> Any:
        if params.get("requestState") != "again":
            return {"resultType": "input_required", "requestState": "again"}
        return {"content": [{"type": "text", "text": "done"}]}


class AsksNothing(_Asks):
    """The first answer asks nothing, with a state."""

    def called(self, params: Json) -> Any:
        if params.get("requestState") != "again":
            return {"resultType": "input_required", "inputRequests": {}, "requestState": "again"}
        return {"content": [{"type": "text", "text": "done"}]}


class AsksForEver(_Asks):
    """The tool asks again after each answer, and the call must end."""

    expected = {"call": FAILS}

    def called(self, params: Json) -> Any:
        return {"resultType": "input_required", **self.asked()}


class AsksTwice(_Asks):
    """The tool asks in two rounds, by the same key."""

    def called(self, params: Json) -> Any:
        if params.get("requestState") != "second":
            state = "second" if params.get("inputResponses") else "first"
            return {"resultType": "input_required", **self.asked(), "requestState": state}
        return super().called(params)


class AsksWithEnvelope(_Asks):
    """Questions have `jsonrpc` and `id`."""

    def asked(self) -> Json:
        return {**super().asked(), "inputRequests": {"colour": {"jsonrpc": "2.0", "id": 1, **QUESTION}}}


class AsksWithoutMode(_Asks):
    """A question does not name its mode, as before 2025-11-25."""

    def asked(self) -> Json:
        params = {name: value for name, value in QUESTION["params"].items() if name != "mode"}
        return {**super().asked(), "inputRequests": {"colour": {**QUESTION, "params": params}}}


class AsksByOddKeys(_Asks):
    """The key of a question has blanks, slashes and letters beyond ASCII."""

    def asked(self) -> Json:
        return {**super().asked(), "inputRequests": {"a b/ä$": QUESTION}}

    def told(self, answers: Json, params: Json) -> str:
        return str(answers["a b/ä$"]["content"])


class AsksUnknown(_Asks):
    """The server asks what no client knows, and the call must end."""

    expected = {"call": FAILS}

    def asked(self) -> Json:
        return {"inputRequests": {"x": {"method": "odd/ask", "params": {}}}, "requestState": "first"}


class AsksInText(_Asks):
    """`inputRequests` is a text, and the call must end."""

    expected = {"call": FAILS}

    def asked(self) -> Json:
        return {"inputRequests": "colour", "requestState": "first"}


class AsksWithContent(_Asks):
    """An answer that asks has content too."""

    def asked(self) -> Json:
        return {**super().asked(), "content": [{"type": "text", "text": "no"}], "isError": False}
