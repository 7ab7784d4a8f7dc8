"""Limits next to a type: which are sound, and which the type's own engine cannot judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolkit.codegen.schema.enforced import mistake_in
from toolkit.codegen.schema.keywords import LIMITS
from toolkit.codegen.schema.report import Notes
from toolkit.jsonschema.keywords import Schema
from toolkit.jsonschema.patterns import for_linear_engine
from toolkit.jsonschema.values import has_type
from toolkit.schema.accepts import compile_pattern


def typed_limits(kind: str, schema: Schema, pointer: str, notes: Notes) -> Schema:
    """The limits next to a type; a wrong one is reported and left out, so that defaults are judged by sound ones only."""
    found: Schema = {}
    for word in LIMITS[kind]:
        if word in schema and word != "items":
            mistake = mistake_in_limit(word, schema[word], kind)
            if mistake is not None:
                notes.problem(mistake, f"{pointer}/{word}")
            elif is_typed(word, schema[word], kind):
                found[word] = for_linear_engine(schema[word]) if word == "pattern" else schema[word]
            else:
                notes.enforce(word, pointer)
    if nothing_fits := contradiction(found):
        notes.finding(nothing_fits, pointer)
    return found


def mistake_in_limit(word: str, value: Any, kind: str) -> str | None:
    """What is wrong with a limit, or None."""
    if word == "pattern":
        return mistake_in_pattern(value)
    if word in ("minLength", "maxLength", "minItems", "maxItems"):
        fits = has_type(value, "integer") and 0 <= value <= 2**53
        return None if fits else f"{word!r} must be an integer of at least 0"
    if not has_type(value, "number"):
        return f"{word!r} must be a number"
    if word == "multipleOf" and value <= 0:
        return "'multipleOf' must be greater than 0"
    return None


def is_typed(word: str, value: Any, kind: str) -> bool:
    """Whether a sound limit can be written into a type; pydantic-core keeps numbers in 64 bits."""
    if word == "pattern":
        return compile_pattern(value) is not None
    if word == "multipleOf":
        return 2**-63 <= value <= 2**63 and (kind == "number" or value == int(value))
    return word in ("minLength", "maxLength", "minItems", "maxItems") or abs(value) <= 2**63


_PAIRS: Final = (("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems"))


def contradiction(limits: Mapping[str, Any]) -> str | None:
    """The sentence about sound limits that leave nothing between them, or None.

    >>> contradiction({"minLength": 3, "maxLength": 2})
    "no value is valid: 'minLength' is greater than 'maxLength'"
    """
    for least, most in _PAIRS:
        if least in limits and most in limits and limits[least] > limits[most]:
            return f"no value is valid: {least!r} is greater than {most!r}"
    return None


def mistake_in_pattern(pattern: object) -> str | None:
    if not isinstance(pattern, str):
        return "'pattern' must be a string"
    if compile_pattern(pattern) is not None or mistake_in({"pattern": pattern}) is None:
        return None
    return (
        "'pattern' cannot be compiled: check its brackets and escapes; lookaround and back-references are not supported"
    )
