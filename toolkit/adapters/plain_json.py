"""An SDK's objects as plain JSON, which is all that decoders read."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, TypeAlias

JsonDict: TypeAlias = dict[str, Any]


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
