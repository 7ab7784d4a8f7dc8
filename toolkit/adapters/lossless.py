"""What is left of a provider's JSON when the neutral form has taken all it has fields for; put back when it goes out again.

A decoder makes neutral values, encodes them again, and keeps the difference to what really came: keys the neutral form
does not know, a null that could as well be absent, a text given as a list of one. Each difference remembers what stood in
its place. Where that is no longer what is encoded, somebody has changed the neutral value, and the change holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolkit.adapters.plain_json import JsonDict

_ABSENT: Final = "absent"
_PUT: Final = "put"
_OVER: Final = "over"
_BELOW: Final = "below"


def own(metadata: Mapping[str, object], provider: str) -> JsonDict:
    """What a provider's adapter keeps in somebody's metadata, residue included."""
    found = metadata.get(provider)
    return found if isinstance(found, dict) else {}


def residue(raw: Any, made: Any) -> JsonDict | None:
    """What turns ``made`` into ``raw``; None if they are equal. JSON itself, so that it can be kept with a conversation.

    >>> residue({"a": 1, "b": None}, {"a": 1})
    {'below': {'b': {'put': None}}}
    >>> residue({"a": 1}, {"a": 1}) is None
    True
    """
    if _same(raw, made):
        return None
    if isinstance(raw, dict) and isinstance(made, dict):
        keys = [*raw, *(key for key in made if key not in raw)]
        found = {key: _entry(key, raw, made) for key in keys}
        return {_BELOW: {key: entry for key, entry in found.items() if entry is not None}}
    if isinstance(raw, list) and isinstance(made, list) and len(raw) == len(made):
        pairs = enumerate(zip(raw, made, strict=True))
        return {_BELOW: {str(at): entry for at, (one, other) in pairs if (entry := residue(one, other)) is not None}}
    return {_PUT: raw, _OVER: made}


def _entry(key: str, raw: JsonDict, made: JsonDict) -> JsonDict | None:
    if key not in made:
        return {_PUT: raw[key]}
    if key not in raw:
        return {_ABSENT: True, _OVER: made[key]}
    return residue(raw[key], made[key])


def restored(made: Any, left: object) -> Any:
    """``made`` with the residue put back, except where it has been changed since.

    >>> restored({"a": 2}, residue({"a": 1, "b": None}, {"a": 1}))
    {'a': 2, 'b': None}
    """
    if not isinstance(left, dict):
        return made
    if _BELOW in left:
        return _below(made, left[_BELOW])
    return left[_PUT] if _PUT in left and _same(left.get(_OVER), made) else made


def _below(made: Any, entries: JsonDict) -> Any:
    if isinstance(made, list):
        return [restored(item, entries.get(str(at))) for at, item in enumerate(made)]
    if not isinstance(made, dict):
        return made
    whole = dict(made)
    for key, entry in entries.items():
        if key not in made:
            if _PUT in entry and _OVER not in entry:
                whole[key] = entry[_PUT]
        elif entry.get(_ABSENT):
            if _same(entry[_OVER], made[key]):
                del whole[key]
        else:
            whole[key] = restored(made[key], entry)
    return whole


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: unlike Python, it tells 1 from true and from 1.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and bool(one == other)
