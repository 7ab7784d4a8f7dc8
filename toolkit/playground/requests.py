"""Reads what the page sends: JSON with a limit of size and time; anything else is refused in one sentence."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from starlette.requests import Request

MAX_BODY: Final = 1024 * 1024
"""The most bytes of a request."""
_SECONDS: Final = 30


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
        async with asyncio.timeout(_SECONDS):
            body = await _read_body(request)
    except TimeoutError:
        raise RequestRefused(408, f"the request did not arrive within {_SECONDS} seconds") from None
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
