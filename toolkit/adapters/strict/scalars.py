"""Texts, numbers, booleans and null in strict form; and how any form takes null as well."""

from __future__ import annotations

import re
from typing import Any, Final

from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.strict import rules
from toolkit.adapters.strict.transform_state import Converted, DescriptionText, TransformState
from toolkit.jsonschema.types import TYPES, as_types
from toolkit.jsonschema.values import has_type, same_json

MAX_LENGTH: Final = 1_000
"""How long a text may be for a pattern to say so: patterns grow with it."""
# By which keywords an untyped schema shows what its author had in mind.
_SHOWN_BY: Final = {
    "object": ("properties", "required", "additionalProperties", "patternProperties"),
    "array": ("items", "prefixItems"),
    "string": ("pattern", "minLength", "maxLength"),
    "number": rules.OPENAI.keywords["number"],
}


def types_of(state: TransformState, schema: JsonDict, pointer: str) -> list[str]:
    """The types a value may have; none after a problem. An untyped schema has the type it is written for."""
    values = listed_values(schema)
    if "type" in schema:
        types = as_types(schema["type"]) or []
        if not types or not all(name in TYPES for name in types):
            state.fail(pointer, "'type' must be one of the seven types, or a list of them")
            return []
    elif values is not None:
        types = [name for name in TYPES if name != "number" or any(isinstance(value, float) for value in values)]
    else:
        types = [name for name, words in _SHOWN_BY.items() if any(word in schema for word in words)][:1]
        if not types:
            state.fail(pointer, "any value is valid here, and strict mode does not support such a schema")
    if values is not None:
        types = [name for name in types if any(has_type(value, name) for value in values)]
        if not types:
            state.fail(pointer, "no value is valid here: no listed value has the type")
    return [name for name in dict.fromkeys(types) if name != "integer" or "number" not in types]


def listed_values(schema: JsonDict) -> list[Any] | None:
    """The values of ``enum`` and ``const``, each once; None if the schema has neither."""
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if not isinstance(values, list):
        return None
    if "const" in schema:
        values = [value for value in values if same_json(value, schema["const"])]
    distinct: dict[tuple[type, str], Any] = {}
    for value in values:
        shown = float(value) if has_type(value, "number") and abs(value) < 2**53 else value
        distinct.setdefault((type(shown), repr(shown)), value)
    return list(distinct.values())


def convert_scalar(state: TransformState, schema: JsonDict, pointer: str, type: str) -> Converted:
    """A text, a number, a boolean or null."""
    text = DescriptionText(state, schema, pointer)
    strict: JsonDict = {"type": type}
    values = listed_values(schema)
    if values is not None:
        beside = {word: limit for word, limit in schema.items() if word not in ("enum", "const")}
        fitting = [value for value in values if has_type(value, type) and state.fits(value, beside)]
        if not fitting:
            return state.fail(
                pointer, "no value is valid here: the listed values do not satisfy the keywords next to them"
            )
        strict |= {"const": fitting[0]} if "const" in schema else {"enum": fitting}
    taken = [
        word for word in state.rules.keywords[type] if word in schema and state.rules.takes(type, word, schema[word])
    ]
    strict |= {word: schema[word] for word in taken}
    served = [*rules.ANYWHERE, *taken]
    if values is not None:
        served += _LENGTHS  # they hold for all that is listed
    elif type == "string" and "format" not in taken and state.rules.lengths_as_patterns:
        lengths = _usable_lengths(schema)
        if lengths:
            strict["pattern"] = _length_pattern(schema, lengths)
        for word, limit in lengths.items():
            text.say(f"{word}: {limit}", word, "reshaped", "written as a pattern, and in the description")
            served.append(word)
    text.move_all_but(tuple(served))
    return Converted(text.add_to(strict))


_LENGTHS: Final = ("minLength", "maxLength")
# A pattern of one character or class, again and again: the only kind that can say how often as well.
_REPEATED: Final = re.compile(r"\^(?P<what>\[\^?[^\[\]\\]+\]|\[\\s\\S\]|\\[dwsDWS]|\.)(?P<how>[+*])\$")
_ANY_TEXT: Final = r"^[\s\S]*$"


def _usable_lengths(schema: JsonDict) -> dict[str, int]:
    """How long a text may be, as far as a pattern can say it.

    OpenAI has been seen to take the keywords themselves, but does not document them, and compatible servers refuse them.
    """
    if not _REPEATED.fullmatch(str(schema.get("pattern", _ANY_TEXT))):
        return {}
    given: dict[str, Any] = {word: schema.get(word) for word in _LENGTHS}
    return {word: int(limit) for word, limit in given.items() if _is_length(limit)}


def _is_length(limit: Any) -> bool:
    return has_type(limit, "integer") and 0 <= limit <= MAX_LENGTH


def _length_pattern(schema: JsonDict, lengths: dict[str, int]) -> str:
    repeated = _REPEATED.fullmatch(schema.get("pattern", _ANY_TEXT))
    assert repeated is not None
    fewest = max(lengths.get("minLength", 0), 1 if repeated["how"] == "+" else 0)
    return f"^{repeated['what']}{{{fewest},{lengths.get('maxLength', '')}}}$"


def nullable(strict: JsonDict) -> JsonDict:
    """The same form, or null.

    >>> nullable({"type": "string", "enum": ["a"]})
    {'type': ['string', 'null'], 'enum': ['a', None]}
    """
    if "anyOf" in strict:
        takes_null = any(branch.get("type") in ("null", ["null"]) for branch in strict["anyOf"])
        return strict if takes_null else {**strict, "anyOf": [*strict["anyOf"], {"type": "null"}]}
    type = strict.get("type")
    if "$ref" in strict or type in ("object", "array"):
        spoken: JsonDict = {word: strict[word] for word in rules.ANNOTATIONS if word in strict}
        bare = {word: value for word, value in strict.items() if word not in spoken}
        return {"anyOf": [bare, {"type": "null"}], **spoken}
    if type == "null" or isinstance(type, list):
        return strict
    made: JsonDict = {**strict, "type": [type, "null"]}
    if "const" in made:
        made = {("enum" if word == "const" else word): value for word, value in made.items()}
        made["enum"] = [strict["const"]]
    if "enum" in made:
        made["enum"] = [*made["enum"], None]
    return made
