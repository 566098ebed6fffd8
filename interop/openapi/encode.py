"""The request that the OpenAPI Specification requires: its tables of styles, RFC 6570 and RFC 3986."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, field
from urllib.parse import quote

from documents import Body, Operation, Parameter

# Swagger 2.0's names of styles.
OLD = {"csv": (None, False), "multi": (None, True), "ssv": ("spaceDelimited", False), "pipes": ("pipeDelimited", False)}
DELIMITER = {"spaceDelimited": "%20", "pipeDelimited": "%7C", "form": ",", "simple": ","}


@dataclass
class Expected:
    method: str
    path: str
    query: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    cookies: list[str] = field(default_factory=list)
    body: tuple[str, object] | None = None


def text(value: object) -> str:
    if isinstance(value, (bool, dict, list)):
        return json.dumps(value)
    return str(value)


def percent(value: object, keep: str = "") -> str:
    return quote(text(value), safe=keep + "~")


def styled(parameter: Parameter) -> tuple[str, bool]:
    style, explode = OLD.get(parameter.style, (parameter.style, parameter.explode))
    style = style or ("form" if parameter.location in ("query", "cookie") else "simple")
    return style, (style == "form") if explode is None else explode


def flat(value: object, between: str, write, pair: str | None = None) -> str:
    """Joins items, or keys and values."""
    if isinstance(value, list):
        return between.join(write(item) for item in value)
    if isinstance(value, dict):
        return between.join(f"{write(key)}{pair or between}{write(of)}" for key, of in value.items())
    return write(value)


def in_path(parameter: Parameter, value: object, write) -> str:
    style, explode = styled(parameter)
    name, pair = percent(parameter.name), "=" if explode else None
    if style == "label":
        return "." + flat(value, "." if explode else ",", write, pair)
    if style == "matrix":
        if explode and isinstance(value, list):
            return "".join(f";{name}={write(item)}" for item in value)
        if explode and isinstance(value, dict):
            return "".join(f";{write(key)}={write(of)}" for key, of in value.items())
        return f";{name}={flat(value, ',', write)}"
    return flat(value, ",", write, pair)


def deep(name: str, value: object) -> list[str]:
    """OpenAPI does not define lists here, so follow Stripe's documentation."""
    if isinstance(value, dict):
        return [pair for key, of in value.items() for pair in deep(f"{name}%5B{percent(key)}%5D", of)]
    if isinstance(value, list):
        nested = any(isinstance(item, (dict, list)) for item in value)
        return [pair for at, item in enumerate(value) for pair in deep(f"{name}%5B{at if nested else ''}%5D", item)]
    return [f"{name}={percent(value)}"]


def pairs(name: str, style: str, explode: bool, value: object, keep: str = "") -> list[str]:
    name = percent(name)
    if style == "deepObject":
        return deep(name, value)
    if explode and isinstance(value, list):
        return [f"{name}={percent(item, keep)}" for item in value]
    if explode and isinstance(value, dict):
        return [f"{percent(key)}={percent(of, keep)}" for key, of in value.items()]
    return [f"{name}={flat(value, DELIMITER[style], lambda it: percent(it, keep))}"]


def form(body: Body, value: dict) -> list[str]:
    found = []
    for name, of in value.items():
        said = body.encoding.get(name, {})
        style, explode = OLD.get(said.get("style"), (said.get("style"), said.get("explode")))
        if isinstance(of, dict) and style is None and explode is None:
            found.append(f"{percent(name)}={percent(json.dumps(of, ensure_ascii=False, separators=(',', ':')))}")
            continue
        style = style or "form"
        found += pairs(name, style, style == "form" if explode is None else explode, of)
    return found


def parts(body: Body, value: dict) -> list[tuple]:
    """Name, media type, content, and whether it is a file, of each part."""
    found = []
    for name, of in value.items():
        schema = (body.schema.get("properties") or {}).get(name, {})
        said = body.encoding.get(name, {}).get("contentType")
        for item in of if isinstance(of, list) else [of]:
            binary = "binary" in (schema.get("format"), schema.get("items", {}).get("format"))
            if binary:
                found.append((name, said or "application/octet-stream", base64.b64decode(item), True))
            elif isinstance(item, dict):
                found.append((name, said or "application/json", json.dumps(item, ensure_ascii=False, separators=(",", ":")).encode(), False))
            else:
                found.append((name, said or "text/plain", text(item).encode(), False))
    return found


def body_of(body: Body, value: object) -> tuple[str, object]:
    media = body.media
    if media.endswith("json"):
        return media, value
    if media == "application/x-www-form-urlencoded":
        return media, form(body, value)
    if media == "multipart/form-data":
        return media, parts(body, value)
    return media, text(value).encode() if media.startswith("text/") else base64.b64decode(value)


def expected(operation: Operation, given: dict, body: object) -> Expected:
    """The expected request of a call."""
    template = operation.path.partition("#")[0]
    by_name = {parameter.name: parameter for parameter in operation.parameters}

    def fill(match: re.Match) -> str:
        inner = match[1]
        name = inner.lstrip("+").partition("=")[0]
        parameter, value = by_name[name], given[("path", name)]
        if inner.startswith("+"):
            return quote(text(value), safe="/:@!$&'()*+,=~")
        if "=" in inner:
            return quote(text(value), safe="/~")
        if parameter.reserved:
            return quote(text(value), safe="/:@!$&'()*+,=~")
        return in_path(parameter, value, percent)

    path, _, fixed = re.sub(r"\{([^{}]+)\}", fill, template).partition("?")
    found = Expected(operation.method, path, [pair for pair in fixed.split("&") if pair])
    names = {pair.partition("=")[0] for pair in found.query}
    for parameter in operation.parameters:
        key = (parameter.location, parameter.name)
        if key not in given or parameter.location == "path" or parameter.name in names:
            continue
        value = given[key]
        style, explode = styled(parameter)
        if parameter.location == "querystring":
            found.query += form(Body("", {}), value)
        elif parameter.content:
            found.query.append(f"{percent(parameter.name)}={percent(json.dumps(value, ensure_ascii=False, separators=(',', ':')))}")
        elif parameter.location == "query":
            found.query += pairs(parameter.name, style, explode, value, ":/?@!$'()*,;" if parameter.reserved else "")
        elif parameter.location == "header":
            found.headers[parameter.name.lower()] = flat(value, ",", text, "=" if explode else None)
        elif style == "cookie":
            found.cookies.append(f"{parameter.name}={value}")
        else:
            found.cookies += pairs(parameter.name, style, explode, value)
    if operation.body is not None and body is not None:
        found.body = body_of(operation.body, body)
    return found
