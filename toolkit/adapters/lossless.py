"""Keeps what the neutral form has no field for in a provider's JSON, and puts it back when the value is encoded again.

A decoder makes a neutral value, encodes it again, and stores the difference to what it received: unknown keys, a null that
could as well be absent, a text written as a list of one. The difference is JSON and is stored in the ``metadata`` of the
value, under the provider's name. It also records what was encoded in each place: if something else is encoded there later,
the neutral value was changed, and the change wins.

Only this file knows how a difference is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias, TypeVar

from toolkit.adapters.values import JsonDict
from toolkit.wire.call import ToolCall
from toolkit.wire.definition import ToolDefinition
from toolkit.wire.message import AssistantToolCallMessage, TextMessage, ToolResultMessage

_WithMetadata: TypeAlias = ToolCall | ToolDefinition | TextMessage | AssistantToolCallMessage | ToolResultMessage
_Value = TypeVar("_Value", bound=_WithMetadata)

# Keys of stored metadata.
_DIFFERENCE: Final = "difference"
_PARTS: Final = "parts"
_NATIVE_PARTS: Final = "native_parts"
# Keys of a difference.
_PUT: Final = "put"
_OVER: Final = "over"
_ABSENT: Final = "absent"
_BELOW: Final = "below"


# -- metadata of neutral values ------------------------------------------------------------------------------------------


def provider_metadata(metadata: Mapping[str, object], provider: str) -> JsonDict:
    """What the adapter of ``provider`` has stored in ``metadata``; an empty dict if nothing."""
    found = metadata.get(provider)
    return found if isinstance(found, dict) else {}


def set_provider_metadata(value: _Value, provider: str, kept: JsonDict) -> _Value:
    """A copy of ``value`` that stores ``kept`` for ``provider``; an empty dict is not stored."""
    is_stored = kept is value.metadata.get(provider) if kept else provider not in value.metadata
    if is_stored:
        return value
    others = {name: item for name, item in value.metadata.items() if name != provider}
    return replace(value, metadata={**others, provider: kept} if kept else others)


def keep_difference(value: _Value, provider: str, received: Any, encoded: Any) -> _Value:
    """A copy of ``value``, decoded from ``received``, that also stores what turns ``encoded`` into ``received``.

    >>> call = keep_difference(ToolCall("1", "add", {}), "acme", {"id": "1", "cache": True}, {"id": "1"})
    >>> restore({"id": "1"}, provider_metadata(call.metadata, "acme"))
    {'id': '1', 'cache': True}
    """
    found = _find_difference(received, encoded)
    if found is None and value.metadata.get(provider) != {}:
        return value
    kept = provider_metadata(value.metadata, provider)
    return set_provider_metadata(value, provider, kept if found is None else {**kept, _DIFFERENCE: found})


def forget_difference(value: _Value, provider: str) -> _Value:
    """A copy of ``value`` without its stored difference."""
    kept = provider_metadata(value.metadata, provider)
    return set_provider_metadata(value, provider, {key: item for key, item in kept.items() if key != _DIFFERENCE})


# -- one JSON value ------------------------------------------------------------------------------------------------------


def add_difference(kept: JsonDict, received: Any, encoded: Any) -> JsonDict:
    """``kept``, with what turns ``encoded`` into ``received`` stored in it if they differ."""
    found = _find_difference(received, encoded)
    return kept if found is None else {**kept, _DIFFERENCE: found}


def has_difference(kept: JsonDict) -> bool:
    """Whether a difference is stored in ``kept``."""
    return _DIFFERENCE in kept


def restore(encoded: Any, kept: JsonDict) -> Any:
    """``encoded`` with the difference stored in ``kept`` put back, except where the encoded value has changed since.

    >>> restore({"a": 2}, add_difference({}, {"a": 1, "b": None}, {"a": 1}))
    {'a': 2, 'b': None}
    """
    return _apply_difference(encoded, kept[_DIFFERENCE]) if _DIFFERENCE in kept else encoded


# -- lists of content parts ----------------------------------------------------------------------------------------------


def keep_parts(received: Sequence[Any], encoded: Sequence[Any]) -> JsonDict:
    """What must be stored to write the same content parts again.

    ``encoded`` has an item for each part: what the block decoded from it is encoded to, or None for a native part, which
    the neutral form has no block for.
    """
    natives = {str(place): part for place, part in enumerate(received) if encoded[place] is None}
    decoded = [(part, again) for part, again in zip(received, encoded, strict=True) if again is not None]
    found = {str(at): _find_difference(part, again) for at, (part, again) in enumerate(decoded)}
    differences = {at: difference for at, difference in found.items() if difference is not None}
    kept = {_PARTS: differences, _NATIVE_PARTS: natives}
    return {key: value for key, value in kept.items() if value}


def restore_parts(encoded: Sequence[Any], kept: JsonDict) -> list[Any]:
    """The parts encoded from blocks, each with its difference put back, and the native parts back in their places."""
    differences: JsonDict = kept.get(_PARTS, {})
    parts = [_apply_difference(part, differences.get(str(at))) for at, part in enumerate(encoded)]
    return insert_native_parts(parts, kept)


def insert_native_parts(parts: Sequence[Any], kept: JsonDict) -> list[Any]:
    """The parts with the native parts stored in ``kept`` back in their places."""
    whole = list(parts)
    for place, raw in sorted((int(place), raw) for place, raw in kept.get(_NATIVE_PARTS, {}).items()):
        whole.insert(place, raw)
    return whole


def keep_native_parts(parts: Mapping[int, Any]) -> JsonDict:
    """What must be stored to write native parts again, given by their places."""
    return {_NATIVE_PARTS: {str(place): part for place, part in parts.items()}} if parts else {}


def has_native_parts(kept: JsonDict) -> bool:
    """Whether native parts are stored in ``kept``."""
    return _NATIVE_PARTS in kept


# -- differences ---------------------------------------------------------------------------------------------------------


def _find_difference(received: Any, encoded: Any) -> JsonDict | None:
    """What turns ``encoded`` into ``received``; None if they are equal.

    >>> _find_difference({"a": 1, "b": None}, {"a": 1})
    {'below': {'b': {'put': None}}}
    """
    if _is_same_json(received, encoded):
        return None
    if isinstance(received, dict) and isinstance(encoded, dict):
        keys = [*received, *(key for key in encoded if key not in received)]
        found = {key: _find_entry(key, received, encoded) for key in keys}
        return {_BELOW: {key: entry for key, entry in found.items() if entry is not None}}
    if isinstance(received, list) and isinstance(encoded, list) and len(received) == len(encoded):
        items = enumerate(map(_find_difference, received, encoded))
        return {_BELOW: {str(at): entry for at, entry in items if entry is not None}}
    return {_PUT: received, _OVER: encoded}


def _find_entry(key: str, received: JsonDict, encoded: JsonDict) -> JsonDict | None:
    if key not in encoded:
        return {_PUT: received[key]}
    if key not in received:
        return {_ABSENT: True, _OVER: encoded[key]}
    return _find_difference(received[key], encoded[key])


def _apply_difference(encoded: Any, difference: object) -> Any:
    if not isinstance(difference, dict):
        return encoded
    if _BELOW in difference:
        return _apply_entries(encoded, difference[_BELOW])
    is_unchanged = _PUT in difference and _is_same_json(difference.get(_OVER), encoded)
    return difference[_PUT] if is_unchanged else encoded


def _apply_entries(encoded: Any, entries: JsonDict) -> Any:
    if isinstance(encoded, list):
        return [_apply_difference(item, entries.get(str(at))) for at, item in enumerate(encoded)]
    if not isinstance(encoded, dict):
        return encoded
    whole = dict(encoded)
    for key, entry in entries.items():
        if key not in encoded:
            if _PUT in entry and _OVER not in entry:
                whole[key] = entry[_PUT]
        elif entry.get(_ABSENT):
            if _is_same_json(entry[_OVER], encoded[key]):
                del whole[key]
        else:
            whole[key] = _apply_difference(encoded[key], entry)
    return whole


def _is_same_json(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON text: unlike ``==`` in Python, 1, true and 1.0 all differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same_json(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same_json, one, other))
    return type(one) is type(other) and bool(one == other)
