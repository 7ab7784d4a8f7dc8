"""A tool's arguments as a request to a service: where each argument goes and how it is encoded there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypedDict
from urllib.parse import quote, unquote

from toolkit.errors import InvalidArguments, SetupError
from toolkit.packs.openapi.body import BodyEncoding, encode_body
from toolkit.packs.openapi.parameter_styles import (
    Pairs,
    path_text,
    percent_encode,
    percent_encode_except_reserved,
    query_pairs,
    simple_text,
    to_json,
)

_TEMPLATE: Final = re.compile(r"\{([^{}]*)\}")
_SAFE_IN_PATH: Final = "!$&'()*+,-./:;=@_~%"
_STYLES: Final = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}

ApiParameter = TypedDict(
    "ApiParameter",
    {
        "in": Literal["path", "query", "header", "cookie"],
        "name": str,
        "style": str,
        "explode": bool,
        "allowReserved": bool,
        "json": bool,
    },
    total=False,
)
"""Where one argument goes. ``name`` is its name at the service, if that differs; ``json`` means that it is sent as JSON;
the other keys are OpenAPI's, with its defaults."""


class ApiBody(TypedDict, total=False):
    """Which argument is the body and how it is encoded; ``base64`` means that it is base64 of the bytes to send."""

    property: str
    mediaType: str
    encoding: dict[str, BodyEncoding]
    base64: bool


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """What is sent. ``target`` is the encoded path and query."""

    target: str
    headers: dict[str, str]
    body: bytes | None


def check_parameters(path: str, parameters: Mapping[str, ApiParameter]) -> None:
    """Raises ``SetupError`` if an operation cannot be called as it is configured."""
    if not path.startswith("/"):
        raise SetupError(f"the path of an operation must start with a slash: {path!r}")
    for key, how in parameters.items():
        place = how.get("in")
        if place not in _STYLES:
            raise SetupError(f"the parameter {key!r} is in {place!r}; use one of {', '.join(_STYLES)}")
        if _style(how) not in _STYLES[place]:
            raise SetupError(f"the style of the {place} parameter {key!r} must be one of {', '.join(_STYLES[place])}")
    known = {how.get("name", key) for key, how in parameters.items() if how.get("in") == "path"}
    for name in _TEMPLATE.findall(path):
        if name not in known:
            raise SetupError(f"the path {path!r} needs {{{name}}}, which is not a parameter of the operation")


def build_request(
    base: str, path: str, parameters: Mapping[str, ApiParameter], body: ApiBody | None, arguments: Mapping[str, Any]
) -> ServiceRequest:
    """The request for these arguments, below the path ``base`` of a service."""
    values: dict[str, str] = {}
    query: Pairs = []
    headers: dict[str, str] = {}
    cookies: Pairs = []
    for key, how in parameters.items():
        if key not in arguments:
            continue
        name, value = how.get("name", key), arguments[key]
        if how.get("json"):
            value = to_json(value)
        style, explode = _style(how), how.get("explode", _style(how) == "form")
        if how["in"] == "path":
            values[name] = path_text(name, value, style, explode)
            _refuse_empty(key, values[name])
        elif how["in"] == "query":
            encode = percent_encode_except_reserved if how.get("allowReserved") else percent_encode
            query += query_pairs(name, value, style, explode, encode)
        elif how["in"] == "header" and value is not None:
            headers[name] = simple_text(value, explode, str)
        elif how["in"] == "cookie":
            cookies += query_pairs(name, value, style, explode)
    if cookies:
        headers["cookie"] = "; ".join(f"{name}={text}" for name, text in cookies)
    content = None
    if body is not None and body["property"] in arguments:
        media_type, content = encode_body(
            arguments[body["property"]],
            body["mediaType"],
            body.get("encoding", {}),
            is_base64=body.get("base64", False),
        )
        headers["content-type"] = media_type
    return ServiceRequest(_target(base, path, values, query), headers, content)


def _style(how: ApiParameter) -> str:
    return how.get("style", _STYLES[how["in"]][0])


def _refuse_empty(key: str, text: str) -> None:
    if not text:
        raise InvalidArguments(f"{key}: it is part of the path and must not be empty")


def _target(base: str, path: str, values: Mapping[str, str], query: Pairs) -> str:
    template, _, fixed = path.partition("#")[0].partition("?")
    for segment in template.split("/"):
        _refuse_dots(_fill(segment, values))
    pairs = [fixed] if fixed else []
    pairs += [f"{name}={text}" for name, text in query]
    target = base.rstrip("/") + _fill(template, values)
    return f"{target}?{'&'.join(pairs)}" if pairs else target


def _fill(template: str, values: Mapping[str, str]) -> str:
    """The template with its parameters filled in; the text around them stays a path, whatever it contains."""
    pieces = _TEMPLATE.split(template)
    for at, piece in enumerate(pieces):
        if at % 2:
            if piece not in values:
                raise InvalidArguments(f"{piece}: it is part of the path and must be given")
            pieces[at] = values[piece]
        else:
            pieces[at] = quote(piece, safe=_SAFE_IN_PATH)
    return "".join(pieces)


def _refuse_dots(segment: str) -> None:
    """Percent-encoding does not change ``..``; some servers also see it after ``%2F``, and ignore what follows a ``;``."""
    if any(part.partition(";")[0] in (".", "..") for part in re.split(r"[/\\]", unquote(segment))):
        raise InvalidArguments(
            "'.' and '..' must not be steps of a path: they would lead to another path of the service"
        )
