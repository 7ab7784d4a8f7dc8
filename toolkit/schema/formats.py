"""Rich types for the ``format`` of a text: what is read is written again as the same text.

A package generated with ``formats = "rich"`` uses them. A field of format ``date-time`` is a ``datetime``; the text it was
read from stays with it, because ``2026-01-01T00:00:00Z`` and ``2026-01-01T00:00:00.000+00:00`` are one moment and two texts.

A text that is not of its format is refused. A value from Python is accepted if it can be written in the format. Dumps always
hold the text, so that they are what the JSON Schema describes. A format whose Python type cannot hold all of its texts, such
as ``duration``, has no rich type.

>>> from pydantic import TypeAdapter
>>> moment = TypeAdapter(WireDateTime).validate_python("2026-01-01T08:00:00.50Z")
>>> moment.hour, TypeAdapter(WireDateTime).dump_python(moment)
(8, '2026-01-01T08:00:00.50Z')
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Annotated, Any, Final, TypeAlias
from uuid import UUID

from pydantic import AnyUrl, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

_DATE: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME: Final = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})"
_UUID: Final = r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
# The characters of RFC 3986; what stands where is checked by the parser of AnyUrl.
_URI: Final = r"[A-Za-z][A-Za-z0-9+.-]*:([A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*"


class _DateTimeWithText(datetime):
    """A moment with the text it was read from. What is calculated from it has no text."""

    wire_text: str | None = None

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (_read_again, ("date-time", self.wire_text)) if self.wire_text else super().__reduce_ex__(protocol)


class _TimeWithText(time):
    """A time of day with the text it was read from."""

    wire_text: str | None = None

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (_read_again, ("time", self.wire_text)) if self.wire_text else super().__reduce_ex__(protocol)


class _UUIDWithText(UUID):
    """An identifier with the text it was read from: its letters may be upper case."""

    wire_text: str | None = None

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (_read_again, ("uuid", self.wire_text)) if self.wire_text else super().__reduce_ex__(protocol)


class _UrlWithText(AnyUrl):
    """An address with the text it was read from: that of ``AnyUrl`` is normalised."""

    wire_text: str | None = None

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (_read_again, ("uri", self.wire_text)) if self.wire_text else super().__reduce_ex__(protocol)

    def __deepcopy__(self, memo: object) -> _UrlWithText:
        return self

    def __str__(self) -> str:
        return self.wire_text or super().__str__()

    def __eq__(self, other: object) -> bool:
        return self._url == other._url if isinstance(other, AnyUrl) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._url)


def write_text(value: Any) -> str:
    """The text of a rich value: the one it was read from, else the usual one."""
    text = getattr(value, "wire_text", None)
    if text is not None:
        return str(text)
    return value.isoformat() if isinstance(value, date | time) else str(value)


@dataclass(frozen=True)
class _TextFormat:
    """How the texts of one format become values; part of the annotation of a field."""

    name: str
    kind: type
    pattern: str
    parse: Callable[[str], Any]
    example: str

    def read(self, value: object) -> object:
        """The value for a text, or a value from Python unchanged; refused if it cannot be written in the format."""
        if isinstance(value, str):
            return self._read_text(value)
        # A datetime is a date, but its text is not.
        is_kind = isinstance(value, self.kind) and not (self.kind is date and isinstance(value, datetime))
        if is_kind and re.fullmatch(self.pattern, write_text(value)):
            return value
        raise self._refusal()

    def _read_text(self, text: str) -> object:
        if re.fullmatch(self.pattern, text) is None:
            raise self._refusal()
        try:
            value = self.parse(text)
        except ValueError:
            raise self._refusal() from None
        if write_text(value) != text:
            object.__setattr__(value, "wire_text", text)
        return value

    def _refusal(self) -> PydanticCustomError:
        context = {"format": self.name, "example": self.example}
        return PydanticCustomError("format", "Input should be of the format {format}, such as {example}", context)

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        write = core_schema.plain_serializer_function_ser_schema(write_text, return_schema=core_schema.str_schema())
        return core_schema.no_info_plain_validator_function(self.read, serialization=write)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "string", "format": self.name}


_FORMATS: Final = {
    found.name: found
    for found in (
        _TextFormat(
            "date-time",
            datetime,
            f"{_DATE}[Tt]{_TIME}",
            lambda text: _DateTimeWithText.fromisoformat(text.upper()),
            "2026-01-31T08:30:00Z",
        ),
        _TextFormat("date", date, _DATE, date.fromisoformat, "2026-01-31"),
        _TextFormat("time", time, _TIME, lambda text: _TimeWithText.fromisoformat(text.upper()), "08:30:00Z"),
        _TextFormat("uuid", UUID, _UUID, _UUIDWithText, "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
        _TextFormat("uri", AnyUrl, _URI, _UrlWithText, "https://example.org/page"),
    )
}


def _read_again(name: str, text: str) -> object:
    return _FORMATS[name].read(text)


WireDateTime: TypeAlias = Annotated[datetime, _FORMATS["date-time"]]
WireDate: TypeAlias = Annotated[date, _FORMATS["date"]]
WireTime: TypeAlias = Annotated[time, _FORMATS["time"]]
WireUUID: TypeAlias = Annotated[UUID, _FORMATS["uuid"]]
WireUrl: TypeAlias = Annotated[AnyUrl, _FORMATS["uri"]]
