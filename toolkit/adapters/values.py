"""JSON values as adapters read and write them: an SDK's objects, texts with broken characters, arguments, results.

A model that is cut, or that writes a bad escape, sends lone surrogates: halves of characters, which JSON can express and
UTF-8 cannot. A text with one of them cannot be sent in any later request, so they are mended wherever text comes or goes.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final, TypeAlias

from toolkit.wire.call import ToolCall, ToolResult
from toolkit.wire.content import ContentBlock

JsonDict: TypeAlias = dict[str, Any]
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LONE: Final = re.compile("[\ud800-\udfff]")
_FIRST_HALF_AT_END: Final = re.compile("[\ud800-\udbff]\\Z")
_REPLACEMENT: Final = "\ufffd"


# -- an SDK's objects as plain JSON, which is all that decoders read -----------------------------------------------------


def plain(value: object) -> Any:
    """The JSON of an SDK's object, or of anything made of mappings and lists; JSON stays as it is.

    >>> plain({"a": (1, 2)})
    {'a': [1, 2]}
    """
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        # SDKs return values that their own types do not know yet; this is not worth a warning.
        return plain(dump(mode="json", by_alias=True, exclude_unset=True, warnings=False))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value


def plain_object(value: object) -> JsonDict:
    """The same where an object is expected; anything else becomes an empty object."""
    found = plain(value)
    return found if isinstance(found, dict) else {}


def plain_list(value: object) -> list[Any]:
    """The same where a list is expected; anything else becomes an empty list."""
    found = plain(value)
    return found if isinstance(found, list) else []


def plain_objects(value: object) -> list[JsonDict]:
    """The same where a list of objects is expected; whatever else is in the list is left out."""
    return [item for item in plain_list(value) if isinstance(item, dict)]


def plain_text(value: object) -> str:
    """A text, or the text of a number, which some servers send as an id; anything else becomes an empty text."""
    return str(value) if isinstance(value, str) or type(value) is int else ""


# -- lone surrogates -----------------------------------------------------------------------------------------------------


def mend(value: Any) -> Any:
    """The same for all texts in a JSON value, keys included. Objects of other types stay as they are."""
    if isinstance(value, str):
        return value if value.isascii() else mend_text(value)
    if isinstance(value, dict):
        return {mend(key): mend(item) for key, item in value.items()}
    if isinstance(value, list):
        return [mend(item) for item in value]
    return tuple(mend(item) for item in value) if type(value) is tuple else value


def mend_text(text: str) -> str:
    """The text with pairs of halves joined. A first half at the end is dropped; other lone halves become U+FFFD.

    >>> mend_text("a\\ud83d\\ude00") == "a\\U0001f600", mend_text("\\ude00b"), mend_text("c\\ud83d")
    (True, '\ufffdb', 'c')
    """
    if text.isascii() or _LONE.search(text) is None:
        return text
    joined = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    return _LONE.sub(_REPLACEMENT, _FIRST_HALF_AT_END.sub("", joined))


class WholeCharacters:
    """A text that comes in pieces, which may cut a character in two: its first half is returned with its second half."""

    def __init__(self) -> None:
        self._half = ""

    def feed(self, piece: str) -> str:
        text = self._half + piece if self._half else piece
        if text.isascii():
            return text
        half = _FIRST_HALF_AT_END.search(text)
        self._half = half[0] if half else ""
        return mend_text(text)


# -- arguments of calls, as text that may be broken ----------------------------------------------------------------------


def call_from_text(id: str, name: str, text: str | None, metadata: dict[str, object] | None = None) -> ToolCall:
    """A call whose arguments came as text. The text is kept. No text at all means an empty object; text that is not a JSON
    object is refused when the call is run, not here.

    >>> call_from_text("1", "add", '{"a": 1}').arguments
    {'a': 1}
    >>> call_from_text("1", "add", '{"a": ').arguments
    {}
    """
    return ToolCall(id, name, {} if text is None else parse_object(text), metadata, text)


def call_from_arguments(id: str, name: str, arguments: object) -> ToolCall:
    """A call whose arguments came as an object, as text, or as any other JSON, which is refused when the call is run."""
    if isinstance(arguments, dict):
        return ToolCall(id, name, arguments)
    return call_from_text(id, name, arguments if isinstance(arguments, str | None) else compact(arguments))


def arguments_text(call: ToolCall) -> str:
    """The text to send back: what the provider sent, as long as it means the same; else compact JSON.

    >>> arguments_text(ToolCall("1", "add", {"a": 1}, raw_arguments='{ "a": 1 }'))
    '{ "a": 1 }'
    >>> arguments_text(ToolCall("1", "add", {"a": 2}, raw_arguments='{ "a": 1 }'))
    '{"a":2}'
    """
    raw = call.raw_arguments
    if raw is not None:
        value = parse_json(raw)
        if value == call.arguments or (not isinstance(value, dict) and not call.arguments):
            return raw
    return compact(call.arguments)


def has_broken_arguments(call: ToolCall) -> bool:
    """Whether the call has an argument text that is not a JSON object, and no arguments either."""
    text = call.unread_text
    return text is not None and not call.arguments and not isinstance(parse_json(text), dict)


def compact(value: object) -> str:
    """JSON without spaces, with keys in the order of the value and non-ASCII characters as they are."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def parse_json(text: str) -> Any:
    """The JSON in a text; None if it is not valid JSON. Lone surrogates in it are mended."""
    try:
        return mend(json.loads(text))
    except (ValueError, RecursionError):
        return None


def parse_object(text: str) -> dict[str, Any]:
    """The JSON object in a text; an empty one if there is none."""
    found = parse_json(text)
    return found if isinstance(found, dict) else {}


# -- results: as text, or as blocks where they hold media ----------------------------------------------------------------


def result_blocks(result: ToolResult) -> Sequence[ContentBlock] | None:
    """The blocks of a multimodal result; None for any other."""
    return result.value if result.kind == "multimodal" and isinstance(result.value, Sequence) else None


def result_text(result: ToolResult) -> Any:
    """The text of a result without media: text itself, an error as ``{"error": ...}``, data as JSON."""
    if result.kind == "text":
        return result.value
    return compact({"error": result.value}) if result.kind == "error" else compact(result.value)
