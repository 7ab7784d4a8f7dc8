"""The page's HTTP: its files, the headers of every response, JSON to it, and bounded JSON from it."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


MAX_BODY: Final = 1024 * 1024
"""The most bytes of a request."""
_BODY_SECONDS: Final = 30


class RequestRefused(Exception):
    """A request that is answered with a status and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status: Final = status
        self.sentence: Final = sentence


async def read_json(request: Request) -> dict[str, Any]:
    """The JSON object in the body of a request."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RequestRefused(415, "send JSON, with `Content-Type: application/json`")
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            body = await _read_body(request)
    except TimeoutError:
        raise RequestRefused(408, f"the request did not arrive within {_BODY_SECONDS} seconds") from None
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise RequestRefused(400, "the body is not valid JSON") from None
    if not isinstance(value, dict):
        raise RequestRefused(400, "the body must be a JSON object")
    return value


async def _read_body(request: Request) -> bytes:
    too_long = RequestRefused(413, f"the request is longer than {MAX_BODY:,} bytes")
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared[:20]) > MAX_BODY:
        raise too_long
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BODY:
            raise too_long
    return bytes(body)


def read_text(given: dict[str, Any], key: str, default: str | None = None) -> str:
    """A text in a request."""
    value = given.get(key, default)
    if not isinstance(value, str):
        raise RequestRefused(400, f"{key!r} must be text")
    return value


# ----------------------------------------------------------------------------------------------------------------------
# Headers of every response, refusals included: what a browser may do with it.

CONTENT_SECURITY_POLICY: Final = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # No text ever becomes markup: the page builds its elements one by one.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
)
HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class SafeHeaders:
    """Adds the headers to each response of an application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app: Final = app
        self._headers: Final = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *self._headers]}
            await send(message)

        await self._app(scope, receive, send_with_headers)


# ----------------------------------------------------------------------------------------------------------------------
# JSON as the page reads it.


def to_json(value: Any) -> bytes:
    """A value as JSON, in ASCII: names of files and texts of tools may hold lone surrogates, which cannot be encoded
    otherwise. Numbers that JSON cannot express are written as texts."""
    try:
        return _dump(value)
    except ValueError:
        return _dump(_as_texts(value))


def _dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), default=str, allow_nan=False).encode()


def _as_texts(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _as_texts(item) for key, item in value.items()}
    return [_as_texts(item) for item in value] if isinstance(value, list | tuple) else value


# ----------------------------------------------------------------------------------------------------------------------
# The files of the page. They are the same for everyone and hold no data, so they need no token.

_FOLDER: Final = "toolkit.playground"
_TYPES: Final[Mapping[str, str]] = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@cache
def page_files() -> Mapping[str, tuple[bytes, str]]:
    """Path -> content and type of every file. The path of the page itself is ``/``."""
    found = {}
    for file in files(_FOLDER).joinpath("page").iterdir():
        kind = _TYPES.get(file.name[file.name.rfind(".") :])
        if kind is not None:
            path = "/" if file.name == "index.html" else f"/{file.name}"
            found[path] = (file.read_bytes(), kind)
    return found


async def send_page_file(request: Request) -> Response:
    """Answers with the file of a path."""
    from starlette.responses import Response

    content, kind = page_files()[request.url.path]
    return Response(content, media_type=kind)
