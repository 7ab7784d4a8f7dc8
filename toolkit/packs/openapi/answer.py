"""A service's answer as the output of a tool, or as an error that names the service."""

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
from toolkit.packs.answers import find_not_json
from toolkit.packs.hide_secrets import hide_secrets
from toolkit.packs.media import block_type
from toolkit.packs.openapi.body import is_json
from toolkit.runtime.arguments import Reader, describe_errors, first_errors
from toolkit.wire.content import ContentBlock, ContentOutput

if TYPE_CHECKING:
    from toolkit.guard.network.guard import Response

_MAX_QUOTED: Final = 2000
_MAX_ERRORS: Final = 50
# Worth another try: too early, too often, or a server on the way was not available.
_RETRIABLE: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


class OutputModel:
    """The output model of a tool, given as ``module:Class`` and imported when it is first needed."""

    def __init__(self, name: str) -> None:
        self._module, colon, self._class = name.partition(":")
        if not colon:
            raise SetupError(f"an output model must be given as 'module:Class', not {name!r}")

    @cached_property
    def reader(self) -> Reader:
        return Reader(getattr(importlib.import_module(self._module), self._class))

    @property
    def is_content(self) -> bool:
        return issubclass(self.reader.model, ContentOutput)


def read_answer(
    owner: str, response: Response, output: OutputModel, secrets: Iterable[str], *, enforce: bool
) -> object:
    """The output; ``secrets`` are kept out of error texts.

    A value that the output schema refuses is an error with ``enforce``, otherwise returned as it came.
    """
    if not 200 <= response.status < 300:
        raise _status_error(owner, response, secrets)
    if response.truncated:
        size = len(response.body)
        raise ToolFailed("TOO_LARGE", f"{owner} answered with more than {size} bytes", status=response.status)
    if output.is_content:
        return _read_content(response, output)
    value = _read_json(owner, response, secrets)
    try:
        return output.reader.from_wire(value)
    except ValidationError as error:
        if enforce:
            raise _schema_error(owner, response, error) from None
        return value


def _status_error(owner: str, response: Response, secrets: Iterable[str]) -> ToolFailed:
    try:
        phrase = f"{response.status} {HTTPStatus(response.status).phrase}"
    except ValueError:
        phrase = str(response.status)
    if 300 <= response.status < 400:
        message = (
            f"{owner} answered {phrase}: redirects are not followed; if it has moved, change its url in the settings"
        )
        return ToolFailed(f"HTTP_{response.status}", message, status=response.status)
    quoted = _quote_body(response, secrets)
    message = f"{owner} answered {phrase}: {quoted}" if quoted else f"{owner} answered {phrase}"
    failed = ToolFailed(f"HTTP_{response.status}", message, status=response.status)
    failed.retriable = response.status in _RETRIABLE
    return failed


def _quote_body(response: Response, secrets: Iterable[str]) -> str:
    """The beginning of a body as text for an error, without secrets."""
    if b"\0" in response.body[:_MAX_QUOTED]:
        return f"{len(response.body)} bytes that are not text"
    text = _without_secrets(response.text().strip(), secrets)
    return text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}... ({len(text)} characters)"


def _without_secrets(text: str, secrets: Iterable[str]) -> str:
    return hide_secrets(text, (("[secret]", value) for value in secrets))


def _read_json(owner: str, response: Response, secrets: Iterable[str]) -> object:
    if not response.body.strip():
        return None
    if response.content_type and not is_json(response.content_type):
        kind = _without_secrets(response.content_type, secrets)[:100]
        message = f"{owner} answered with {kind}, but its OpenAPI document declares JSON"
        raise ToolFailed("REMOTE", f"{message}: {_quote_body(response, secrets)[:200]}", status=response.status)
    try:
        value: object = from_json(response.body.removeprefix(b"\xef\xbb\xbf"), allow_inf_nan=False)
    except ValueError:
        raise ToolFailed("REMOTE", f"{owner} answered with text that is not JSON", status=response.status) from None
    if problem := find_not_json(value):
        raise ToolFailed("REMOTE", f"{owner} sent an answer that {problem}", status=response.status)
    return value


def _schema_error(owner: str, response: Response, error: ValidationError) -> ToolFailed:
    return ToolFailed(
        "INVALID_OUTPUT",
        f"{owner} sent an answer that its OpenAPI document does not allow: {describe_errors(error)}",
        status=response.status,
        errors=first_errors(error, _MAX_ERRORS),
        error_count=error.error_count(),
    )


def _read_content(response: Response, output: OutputModel) -> object:
    """An answer for which the document declares no JSON: text as it is, JSON also as data, anything else as media."""
    media_type = response.content_type.partition(";")[0].strip().lower()
    content: dict[str, Any] = {}
    if _is_text(media_type, response.body):
        content["text"] = response.text()
        if is_json(media_type) and response.body.strip():
            content = {**content, **_read_structured(response.body)}
    elif response.body:
        data = base64.b64encode(response.body).decode()
        content["blocks"] = (ContentBlock(block_type(media_type), media_type or "application/octet-stream", data=data),)
    return output.reader.model(**content)


def _read_structured(body: bytes) -> dict[str, Any]:
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError:
        return {}
    return {} if find_not_json(value) else {"structured": value}


def _is_text(media_type: str, body: bytes) -> bool:
    family = media_type.partition("/")[0]
    if is_json(media_type) or family == "text" or media_type.endswith(("+xml", "/xml")):
        return True
    if family in ("image", "audio", "video", "font") or b"\0" in body[:_MAX_QUOTED]:
        return False
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
