"""What a service answered -> the output of a tool, or a failure that names the service."""

from __future__ import annotations

import base64
import importlib
from collections.abc import Iterable
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError
from pydantic_core import from_json

from toolkit.errors import SetupError, ToolFailed
from toolkit.packs.openapi.body import is_json
from toolkit.runtime.call.reader import Reader, describe_errors
from toolkit.wire.content import BlockType, ContentBlock, ContentOutput

if TYPE_CHECKING:
    from toolkit.guard.net.exchange import Response

_MAX_TOLD: Final = 2000
_MAX_ERRORS: Final = 50
# Worth another try: too early, too often, or somebody on the way was not there.
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_SHORTEST_SECRET: Final = 4


class Output:
    """The output model of a tool, named as ``module:Class`` and imported when it is first needed."""

    def __init__(self, name: str) -> None:
        self._module, colon, self._class = name.partition(":")
        if not colon:
            raise SetupError(f"an output is named as 'module:Class', not {name!r}")

    @cached_property
    def reader(self) -> Reader:
        return Reader(getattr(importlib.import_module(self._module), self._class))

    @property
    def is_content(self) -> bool:
        return issubclass(self.reader.model, ContentOutput)


def read_answer(owner: str, response: Response, output: Output, secrets: Iterable[str], *, enforce: bool) -> object:
    """The output; ``secrets`` are kept out of what is said of a failure.

    What the output schema refuses is an error with ``enforce``, else given as it came.
    """
    if not 200 <= response.status < 300:
        raise _refused(owner, response, secrets)
    if response.truncated:
        size = len(response.body)
        raise ToolFailed("TOO_LARGE", f"{owner} answered more than {size} bytes", status=response.status)
    if output.is_content:
        return _content(response, output)
    value = _json(owner, response, secrets)
    try:
        return output.reader.from_wire(value)
    except ValidationError as error:
        if enforce:
            raise _untrue(owner, response, error) from None
        return value


def _refused(owner: str, response: Response, secrets: Iterable[str]) -> ToolFailed:
    try:
        phrase = f"{response.status} {HTTPStatus(response.status).phrase}"
    except ValueError:
        phrase = str(response.status)
    if 300 <= response.status < 400:
        words = (
            f"{owner} answered {phrase}: redirects are not followed; its url in the settings must be where it is now"
        )
        return ToolFailed(f"HTTP_{response.status}", words, status=response.status)
    told = _told(response, secrets)
    words = f"{owner} answered {phrase}: {told}" if told else f"{owner} answered {phrase}"
    failed = ToolFailed(f"HTTP_{response.status}", words, status=response.status)
    failed.retriable = response.status in _PASSING
    return failed


def _told(response: Response, secrets: Iterable[str]) -> str:
    """The beginning of a body as text on which somebody can act, without what only the service may know."""
    if b"\0" in response.body[:_MAX_TOLD]:
        return f"{len(response.body)} bytes that are no text"
    text = _without(secrets, response.text().strip())
    return text if len(text) <= _MAX_TOLD else f"{text[:_MAX_TOLD]}... ({len(text)} characters)"


def _without(secrets: Iterable[str], text: str) -> str:
    for secret in secrets:
        # A short one would be found everywhere, and tell more by its gaps.
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "[secret]")
    return text


def _json(owner: str, response: Response, secrets: Iterable[str]) -> object:
    if not response.body.strip():
        return None
    if response.content_type and not is_json(response.content_type):
        kind = _without(secrets, response.content_type)[:100]
        words = f"{owner} answered {kind} where its document promises JSON"
        raise ToolFailed("REMOTE", f"{words}: {_told(response, secrets)[:200]}", status=response.status)
    try:
        return from_json(response.body.removeprefix(b"\xef\xbb\xbf"), allow_inf_nan=False)
    except ValueError:
        raise ToolFailed("REMOTE", f"{owner} answered what is no JSON", status=response.status) from None


def _untrue(owner: str, response: Response, error: ValidationError) -> ToolFailed:
    return ToolFailed(
        "INVALID_OUTPUT",
        f"{owner} answered what its own document rules out: {describe_errors(error)}",
        status=response.status,
        errors=error.errors(include_input=False, include_url=False)[:_MAX_ERRORS],
        error_count=error.error_count(),
    )


def _content(response: Response, output: Output) -> object:
    """An answer whose document promises no JSON: text as it is, JSON also as data, anything else as media."""
    media_type = response.content_type.partition(";")[0].strip().lower()
    content: dict[str, Any] = {}
    if _is_text(media_type, response.body):
        content["text"] = response.text()
        if is_json(media_type) and response.body.strip():
            content = {**content, **_structured(response.body)}
    elif response.body:
        data = base64.b64encode(response.body).decode()
        content["blocks"] = (ContentBlock(_block(media_type), media_type or "application/octet-stream", data=data),)
    return output.reader.model(**content)


def _structured(body: bytes) -> dict[str, Any]:
    try:
        return {"structured": from_json(body, allow_inf_nan=False)}
    except ValueError:
        return {}


def _is_text(media_type: str, body: bytes) -> bool:
    family = media_type.partition("/")[0]
    if is_json(media_type) or family == "text" or media_type.endswith(("+xml", "/xml")):
        return True
    if family in ("image", "audio", "video", "font") or b"\0" in body[:_MAX_TOLD]:
        return False
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _block(media_type: str) -> BlockType:
    family = media_type.partition("/")[0]
    return "image" if family == "image" else "audio" if family == "audio" else "document"
