"""Limits beside a type: which are sound, and which say what the type's own engine cannot judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolkit.codegen.schema.accepts import json_type
from toolkit.codegen.schema.enforced import mistake_in
from toolkit.codegen.schema.keywords import LIMITS
from toolkit.codegen.schema.references import Schema
from toolkit.codegen.schema.report import Notes


def typed_limits(kind: str, schema: Schema, pointer: str, notes: Notes) -> Schema:
    """The limits beside a type; a wrong one is told and left out, so that defaults are judged by sound ones only."""
    found: Schema = {}
    for word in LIMITS[kind]:
        if word in schema and word != "items":
            mistake = mistake_in_limit(word, schema[word], kind)
            if mistake is not None:
                notes.problem(mistake, f"{pointer}/{word}")
            elif is_typed(word, schema[word], kind):
                found[word] = schema[word]
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
        fits = json_type(value) == "integer" and 0 <= value <= 2**53
        return None if fits else f"{word!r} must be a whole number from 0"
    if json_type(value) not in ("integer", "number"):
        return f"{word!r} must be a number"
    if word == "multipleOf" and value <= 0:
        return "'multipleOf' must be above 0"
    return None


def is_typed(word: str, value: Any, kind: str) -> bool:
    """Whether a sound limit can be written into a type; pydantic-core keeps numbers in 64 bits."""
    if word == "pattern":
        return compiles(value)
    if word == "multipleOf":
        return 2**-63 <= value <= 2**63 and (kind == "number" or value == int(value))
    return word in ("minLength", "maxLength", "minItems", "maxItems") or abs(value) <= 2**63


_PAIRS: Final = (("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems"))


def contradiction(limits: Mapping[str, Any]) -> str | None:
    """What is said of sound limits that leave nothing between them, or None.

    >>> contradiction({"minLength": 3, "maxLength": 2})
    "no value fits: 'minLength' is above 'maxLength'"
    """
    for least, most in _PAIRS:
        if least in limits and most in limits and limits[least] > limits[most]:
            return f"no value fits: {least!r} is above {most!r}"
    return None


def mistake_in_pattern(pattern: object) -> str | None:
    if not isinstance(pattern, str):
        return "'pattern' must be text"
    if compiles(pattern) or mistake_in({"pattern": pattern}) is None:
        return None
    return "'pattern' does not compile in the linear-time engine (no look-around, no back-references)"


def compiles(pattern: str) -> bool:
    """Whether the linear-time engine behind the generated models takes a pattern."""
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    try:
        SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError:
        return False
    return True
