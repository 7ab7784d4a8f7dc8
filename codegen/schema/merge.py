"""Several schemas that hold at once (``allOf``, words beside a reference) as one, for the types.

The merged schema accepts at least what all of its parts accept together; ``exact`` says whether it accepts nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from toolkit.codegen.schema.accepts import json_type
from toolkit.codegen.schema.keywords import ASSERTIONS, ENFORCED
from toolkit.codegen.schema.references import Schema
from toolkit.models.exact import json_key, same_json

_LOWEST: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems")
_HIGHEST: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems")


@dataclass(slots=True)
class Merged:
    """One schema for several."""

    schema: Schema
    exact: bool = True


def merge(parts: Sequence[Schema]) -> Merged:
    """One schema for parts that hold no ``$ref`` and no ``allOf`` of their own.

    >>> merge([{"type": ["string", "null"]}, {"type": "string", "minLength": 2}, {"minLength": 3}])
    Merged(schema={'type': 'string', 'minLength': 3}, exact=True)
    >>> merge([{"properties": {"a": {}}}, {"properties": {"b": {}}, "additionalProperties": False}]).exact
    False
    """
    merged = Merged({})
    for part in parts:
        for word, value in part.items():
            if word not in merged.schema:
                merged.schema[word] = value
            elif not same_json(merged.schema[word], value):
                _combine(merged, word, value)
    _close(merged, parts)
    # What one part calls its own properties or items is another matter in the merged schema.
    if len(parts) > 1 and any(word in ENFORCED for word in merged.schema):
        merged.exact = False
    return merged


def _combine(merged: Merged, word: str, value: Any) -> None:
    known = merged.schema[word]
    combine = _COMBINED.get(word)
    if combine is not None:
        merged.schema[word] = combine(known, value)
    elif word in ASSERTIONS and word != "additionalProperties":
        merged.exact = False


def _types(one: object, other: object) -> object:
    mine, theirs = ([kind] if isinstance(kind, str) else kind for kind in (one, other))
    if not isinstance(mine, list) or not isinstance(theirs, list):
        return one
    both = [kind for kind in mine if kind in theirs]
    both += ["integer"] * ("integer" not in both and {"integer", "number"} <= {*mine, *theirs})
    return both[0] if len(both) == 1 else both


def _properties(one: Schema, other: Schema) -> Schema:
    return {
        key: _both(one[key], other[key]) if key in one and key in other else one.get(key, other.get(key))
        for key in {**one, **other}
    }


def _both(one: object, other: object) -> object:
    return one if same_json(one, other) else {"allOf": [one, other]}


def _common(one: list[Any], other: list[Any]) -> list[Any]:
    wanted = set(map(json_key, other))
    return [value for value in one if json_key(value) in wanted]


def _tighter(one: Any, other: Any, choose: Callable[[Any, Any], Any]) -> Any:
    # A limit that is no number is told where it stands.
    return choose(one, other) if {json_type(one), json_type(other)} <= {"integer", "number"} else one


_COMBINED: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "type": _types,
    "properties": _properties,
    "required": lambda one, other: [*one, *(name for name in other if name not in one)],
    "items": _both,
    "enum": _common,
    **dict.fromkeys(_LOWEST, lambda one, other: _tighter(one, other, max)),
    **dict.fromkeys(_HIGHEST, lambda one, other: _tighter(one, other, min)),
}


def _close(merged: Merged, parts: Sequence[Schema]) -> None:
    """Which further properties the merged object takes: a closed part lets none through that it does not name itself."""
    limited = [part for part in parts if part.get("additionalProperties", True) is not True]
    if not limited:
        return
    names = {tuple(sorted(part.get("properties", {}))) for part in parts if "properties" in part or part in limited}
    merged.exact &= len(limited) == 1 and len(names) == 1
    if any(part["additionalProperties"] is False and not part.get("patternProperties") for part in limited):
        merged.schema["additionalProperties"] = False
    elif len(limited) > 1 or len(names) > 1:
        merged.schema["additionalProperties"] = True
