"""Arguments of a tool -> a request to a service: where each of them goes, and how it is written there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypedDict
from urllib.parse import quote, unquote

from toolkit.errors import InvalidArguments, SetupError
from toolkit.packs.openapi.body import Encoding, written
from toolkit.packs.openapi.styles import Pairs, as_json, encoded, encoded_but_reserved, in_path, in_query, simple

_TEMPLATE: Final = re.compile(r"\{([^{}]*)\}")
_STATIC: Final = "!$&'()*+,-./:;=@_~%"
_STYLES: Final = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}

Parameter = TypedDict(
    "Parameter",
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
"""Where one argument goes. ``name`` is what the service calls it, if not as the tool does; ``json`` that it is written as
JSON; the others are OpenAPI's words, with its defaults."""


class Body(TypedDict, total=False):
    """Which argument is the body, and how it is written; ``base64`` that it is base64 of the bytes to send."""

    property: str
    mediaType: str
    encoding: dict[str, Encoding]
    base64: bool


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent. ``target`` is path and query, encoded."""

    target: str
    headers: dict[str, str]
    body: bytes | None


def check_parameters(path: str, parameters: Mapping[str, Parameter]) -> None:
    """Raises ``SetupError`` where an operation cannot be called as it says."""
    if not path.startswith("/"):
        raise SetupError(f"the path of an operation begins with a slash, not as {path!r}")
    for key, how in parameters.items():
        place = how.get("in")
        if place not in _STYLES:
            raise SetupError(f"the parameter {key!r} is in {place!r}; write one of {', '.join(_STYLES)}")
        if _style(how) not in _STYLES[place]:
            raise SetupError(f"the parameter {key!r} has no style of {place} parameters: {', '.join(_STYLES[place])}")
    known = {how.get("name", key) for key, how in parameters.items() if how.get("in") == "path"}
    for name in _TEMPLATE.findall(path):
        if name not in known:
            raise SetupError(f"the path {path!r} needs {{{name}}}, which is no parameter of the operation")


def build(
    base: str, path: str, parameters: Mapping[str, Parameter], body: Body | None, arguments: Mapping[str, Any]
) -> Request:
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
            value = as_json(value)
        style, explode = _style(how), how.get("explode", _style(how) == "form")
        if how["in"] == "path":
            values[name] = in_path(name, value, style, explode)
            _refuse_empty(key, values[name])
        elif how["in"] == "query":
            encode = encoded_but_reserved if how.get("allowReserved") else encoded
            query += in_query(name, value, style, explode, encode)
        elif how["in"] == "header" and value is not None:
            headers[name] = simple(value, explode, str)
        elif how["in"] == "cookie":
            cookies += in_query(name, value, style, explode)
    if cookies:
        headers["cookie"] = "; ".join(f"{name}={text}" for name, text in cookies)
    content = None
    if body is not None and body["property"] in arguments:
        media_type, content = written(
            arguments[body["property"]],
            body["mediaType"],
            body.get("encoding", {}),
            is_base64=body.get("base64", False),
        )
        headers["content-type"] = media_type
    return Request(_target(base, path, values, query), headers, content)


def _style(how: Parameter) -> str:
    return how.get("style", _STYLES[how["in"]][0])


def _refuse_empty(key: str, text: str) -> None:
    if not text:
        raise InvalidArguments(f"{key}: it stands in the path, where nothing may be empty")


def _target(base: str, path: str, values: Mapping[str, str], query: Pairs) -> str:
    template, _, fixed = path.partition("#")[0].partition("?")
    for segment in template.split("/"):
        _refuse_dots(_filled(segment, values))
    pairs = [fixed] if fixed else []
    pairs += [f"{name}={text}" for name, text in query]
    target = base.rstrip("/") + _filled(template, values)
    return f"{target}?{'&'.join(pairs)}" if pairs else target


def _filled(template: str, values: Mapping[str, str]) -> str:
    """The template with its parameters in place; what stands around them is kept as a path, whatever it holds."""
    pieces = _TEMPLATE.split(template)
    for at, piece in enumerate(pieces):
        if at % 2:
            if piece not in values:
                raise InvalidArguments(f"{piece}: it stands in the path and must be given")
            pieces[at] = values[piece]
        else:
            pieces[at] = quote(piece, safe=_STATIC)
    return "".join(pieces)


def _refuse_dots(segment: str) -> None:
    """``..`` is not encoded by anybody, and some servers look for it behind ``%2F``, and without what follows a ``;``."""
    if any(part.partition(";")[0] in (".", "..") for part in re.split(r"[/\\]", unquote(segment))):
        raise InvalidArguments("'.' and '..' as steps of a path would lead to another place of the service")
