"""Reading the JSON of a stream when a value may have the wrong type.

A wrong type never raises. The value is left out, the first one is remembered, and the result says so: without that, a piece
of the answer would be missing and nobody would know.
"""

from __future__ import annotations

from typing import Any, Final

from toolkit.adapters.answers.surrogates import mend_text
from toolkit.adapters.plain_json import JsonDict

_KINDS: Final = {
    str: "a text",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "an object",
}


class TypeReader:
    """Reads values of expected types. Null and absent values have no type; they are empty.

    >>> read = TypeReader()
    >>> read.text("hello", "delta.content"), read.text(7, "delta.content")
    ('hello', '')
    >>> read.error["message"]
    'the stream has a number at delta.content, where a text is expected. The rest of the answer was kept.'
    """

    def __init__(self) -> None:
        self.error: JsonDict | None = None

    def text(self, value: object, where: str) -> str:
        return self.maybe_text(value, where) or ""

    def maybe_text(self, value: object, where: str) -> str | None:
        if value is None or isinstance(value, str):
            return value
        self._note(value, where, "a text")
        return None

    def id(self, value: object, where: str) -> str | None:
        """An id. Some servers send numbers."""
        return str(value) if type(value) is int else self.name(value, where)

    def name(self, value: object, where: str) -> str | None:
        """The name of a tool, or a piece of it. It comes back in results and requests, so lone surrogates are replaced."""
        text = self.maybe_text(value, where)
        return None if text is None else mend_text(text)

    def index(self, value: object, where: str) -> int | None:
        if value is None or type(value) is int:
            return value
        self._note(value, where, "a number")
        return None

    def number(self, value: object, where: str) -> float | None:
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            return value
        self._note(value, where, "a number")
        return None

    def flag(self, value: object, where: str) -> bool:
        if value is None or isinstance(value, bool):
            return bool(value)
        self._note(value, where, "a boolean")
        return False

    def json_object(self, value: object, where: str) -> JsonDict:
        if isinstance(value, dict):
            return value
        if value is not None:
            self._note(value, where, "an object")
        return {}

    def json_list(self, value: object, where: str) -> list[Any]:
        if isinstance(value, list):
            return value
        if value is not None:
            self._note(value, where, "a list")
        return []

    def objects(self, value: object, where: str) -> list[JsonDict]:
        """The objects in a list; anything else in it is left out."""
        items = self.json_list(value, where)
        return [found for at, item in enumerate(items) if (found := self.json_object(item, f"{where}[{at}]"))]

    def _note(self, value: object, where: str, expected: str) -> None:
        if self.error is None:
            found = _KINDS.get(type(value), "a foreign value")
            message = f"the stream has {found} at {where}, where {expected} is expected"
            self.error = {"type": "malformed_stream", "message": f"{message}. The rest of the answer was kept."}
