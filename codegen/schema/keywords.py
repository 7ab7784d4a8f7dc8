"""JSON Schema keywords, draft-07 to 2020-12: the table of what the generator does with each, and the rules for single ones.

``TYPED`` keywords shape the generated types, which enforce them. ``ENFORCED`` keywords say what types cannot: the validator
judges them at run time, on the wire form of a value that its types have accepted. ``ANNOTATION`` keywords, and those in no
row, are kept in the definition that the model reads and have no other effect. ``REFUSED`` keywords stop generation with
their sentence. Nothing is dropped silently: where a type cannot show a typed keyword, such as a limit without a type, the
validator enforces it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from toolkit.codegen.schema.document import Loss, Notes
from toolkit.errors import GenerationError
from toolkit.schema.accepts import compile_pattern, has_type, json_key, json_type, same_json
from toolkit.schema.keywords import (
    ANNOTATIONS,
    ASSERTIONS,
    TYPE_WORDS,
    TYPES,
    Schema,
    for_linear_engine,
    join_pointer,
    map_children,
    subschemas,
    types_of,
    unknown_type,
)

TYPED: Final = frozenset(
    {
        "$defs", "$ref", "additionalProperties", "allOf", "anyOf", "const", "default", "definitions", "enum",
        "exclusiveMaximum", "exclusiveMinimum", "items", "maxItems", "maxLength", "maximum", "minItems", "minLength",
        "minimum", "multipleOf", "oneOf", "pattern", "properties", "required", "type",
    }
)  # fmt: skip

ENFORCED: Final = frozenset(
    {
        "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef", "additionalItems", "contains",
        "dependencies", "dependentRequired", "dependentSchemas", "else", "if", "maxContains", "maxProperties", "minContains",
        "minProperties", "not", "patternProperties", "prefixItems", "propertyNames", "then", "unevaluatedItems",
        "unevaluatedProperties", "uniqueItems",
    }
)  # fmt: skip

ANNOTATION: Final = (
    (ANNOTATIONS - {"default"})
    | {"$comment", "$id", "$schema", "$vocabulary"}
    | {"discriminator", "externalDocs", "nullable", "xml"}
)

_RUNS_CODE: Final = "it can name Python code to import, and a spec is data"

REFUSED: Final[dict[str, str]] = {
    "customBasePath": _RUNS_CODE,
    "customTypePath": _RUNS_CODE,
    "default_factory": _RUNS_CODE,
}

LIMITS: Final[dict[str, tuple[str, ...]]] = {
    name: tuple(word for word in words if word in TYPED) for name, words in TYPE_WORDS.items()
}
"""Which typed keywords say something about which type; next to another type they have no effect, as in JSON Schema."""


def refusal(keyword: str) -> str | None:
    """Why this keyword stops generation, or None."""
    return _RUNS_CODE if keyword.startswith("x-python") else REFUSED.get(keyword)


def is_stray_property(word: str, value: object) -> bool:
    """Whether a word that JSON Schema does not know holds a schema: a property that is not in ``properties``."""
    is_unknown = word not in TYPED | ENFORCED | ANNOTATION and not word.startswith("x-")
    return is_unknown and isinstance(value, dict) and isinstance(value.get("type"), str)


def has_effect(word: str, schema: Schema) -> bool:
    """Whether an enforced keyword can refuse anything in its schema.

    >>> has_effect("uniqueItems", {"uniqueItems": False}), has_effect("then", {"then": {"type": "null"}})
    (False, False)
    >>> has_effect("propertyNames", {"propertyNames": {"type": "string"}})
    False
    """
    value = schema[word]
    if word in _ONLY_BESIDE and not any(other in schema for other in _ONLY_BESIDE[word]):
        return False
    if word == "propertyNames" and isinstance(value, dict) and value.get("type") == "string":
        return any(other in ASSERTIONS and other != "type" for other in value)
    return value not in _WITHOUT_EFFECT.get(word, (True, {}))


_ONLY_BESIDE: Final = {
    "additionalItems": ("items",),
    "else": ("if",),
    "if": ("then", "else"),
    "maxContains": ("contains",),
    "minContains": ("contains",),
    "then": ("if",),
}
_WITHOUT_EFFECT: Final[dict[str, tuple[object, ...]]] = {
    "dependencies": ({},),
    "dependentRequired": ({},),
    "dependentSchemas": ({},),
    "minProperties": (0,),
    "not": (False,),
    "contains": (),
    "maxContains": (),
    "maxProperties": (),
    "minContains": (),
    "prefixItems": ([],),
    "uniqueItems": (False,),
}


# ----------------------------------------------------------------------------------------------------------------------
# The schema that is enforced at run time: the spec's own, without prose.

_PROSE: Final = frozenset(
    {"$comment", "default", "deprecated", "description", "example", "examples", "readOnly", "title", "writeOnly"}
)
MAX_PATTERNS: Final = 500
"""Each may take megabytes once it is compiled."""

_TUPLE: Final = (
    "'items' is a list, as in drafts before 2020-12: write 'prefixItems' instead, or name the draft,"
    ' such as "$schema": "http://json-schema.org/draft-07/schema#"'
)
_ELSEWHERE: Final = re.compile(r"Resource ('.*?') is not present in a registry")


def enforced_text(schema: Schema) -> str:
    """The schema as JSON text for ``toolkit.schema.enforce``."""
    return json.dumps(_without_prose(schema), ensure_ascii=False, separators=(",", ":"))


def mistake_in(schema: Schema) -> str | None:
    """Why the validator does not take a schema, or None: a reference to elsewhere, a pattern that is not linear, …"""
    patterns = set(_patterns(schema))
    if len(patterns) > MAX_PATTERNS:
        return f"it has {len(patterns)} different patterns; at most {MAX_PATTERNS} are allowed"
    from toolkit.schema.enforce import new_validator  # with pydantic, which most schemas do not need here

    try:
        new_validator(_without_prose(schema))
    except ImportError:
        raise GenerationError("generation needs jsonschema-rs: pip install 'typed-toolkit[codegen]'") from None
    except ValueError as error:
        return _explain(error)
    return None


def usual_mistakes(schema: Schema) -> list[tuple[str, str]]:
    """Mistakes with a known way out in a schema that the validator does not take, each with its pointer."""
    found = []
    is_current = "2020-12" in str(schema.get("$schema", "2020-12"))
    for pointer, node in subschemas(schema):
        if is_current and isinstance(node.get("items"), list):
            found.append((_TUPLE, f"{pointer}/items"))
        types = types_of(node) or ()
        if any(one not in TYPES for one in types):
            found.append((unknown_type(types), f"{pointer}/type"))
    return found


def _patterns(node: object) -> Iterator[str]:
    """All patterns, also in places that only a reference leads to."""
    if isinstance(node, list):
        for item in node:
            yield from _patterns(item)
    elif isinstance(node, dict):
        for word, value in node.items():
            if word == "pattern" and isinstance(value, str):
                yield value
            elif word == "patternProperties" and isinstance(value, dict):
                yield from value
            yield from _patterns(value)


def _explain(error: ValueError) -> str:
    message = str(error).splitlines()[0][:300]
    away = _ELSEWHERE.match(message)
    if away is not None:
        return f"it refers to {away[1]}, but nothing is read from elsewhere; move that schema to '$defs'"
    place = "".join(f"/{part}" for part in getattr(error, "instance_path", ()))
    return f"{message} ({place})" if place else message


def is_valid(schema: object, root: Schema, value: object) -> bool:
    """Whether a value fits a part of a schema, whose references lead into the whole."""
    from toolkit.schema.enforce import new_validator

    whole: Schema = {word: root[word] for word in ("$defs", "definitions", "$schema") if word in root}
    try:
        return new_validator({**whole, "allOf": [_without_prose(schema)]}).is_valid(value)
    except ValueError:
        return False


def _without_prose(node: Any, pointer: str = "") -> Any:
    """A schema without its prose; no pointer leads through prose."""
    if not isinstance(node, dict):
        return node
    kept = {word: value for word, value in node.items() if word not in _PROSE and not word.startswith("x-")}
    return map_children(kept, _without_prose)


# ----------------------------------------------------------------------------------------------------------------------
# Limits next to a type: sound ones become part of it, unless its own engine cannot judge them.


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


# ----------------------------------------------------------------------------------------------------------------------
# Typos with a clear meaning are corrected first, each with a finding: one typo must not cost a whole tool.

_KNOWN_DRAFT: Final = re.compile(r"https?://json-schema\.org/(draft-0[467]|draft/20(19-09|20-12)|schema)\b")
_TEXTS: Final = ("format", "contentEncoding", "contentMediaType")
_EXCLUSIVE: Final = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}


def mend(schema: Any, notes: Notes, pointer: str = "") -> Any:
    """The schema without its typos; where there are none, an equal one."""
    if not isinstance(schema, dict):
        return schema
    kept: Schema = {}
    for word, value in schema.items():
        if value is None and word in ASSERTIONS and word != "const":
            notes.finding(f"{word!r} is null and is ignored", join_pointer(pointer, word))
        else:
            kept[word] = value
    found = map_children(kept, lambda inner, place: mend(inner, notes, place), pointer)
    for word in [word for word in found if word in _MEND]:
        _MEND[word](found, word, notes, pointer)
    return found


def _mend_required(schema: Schema, word: str, notes: Notes, pointer: str) -> None:
    names = schema[word]
    if isinstance(names, bool):
        notes.finding("'required' is a list of names next to 'properties'; on a property it has no effect", pointer)
        del schema[word]
    elif isinstance(names, list) and all(isinstance(name, str) for name in names):
        schema[word] = list(dict.fromkeys(names))


def _mend_type(schema: Schema, word: str, notes: Notes, pointer: str) -> None:
    types = schema[word]
    if isinstance(types, list) and all(isinstance(one, str) for one in types):
        schema[word] = list(dict.fromkeys(types))
    if types == []:
        notes.problem(unknown_type(()), f"{pointer}/type")


def _mend_exclusive(schema: Schema, word: str, notes: Notes, pointer: str) -> None:
    """Up to draft-04 these were true or false, next to the limit itself."""
    if not isinstance(schema[word], bool):
        return
    notes.finding(f"{word!r} is a number since draft-06; the boolean is read as in draft-04", f"{pointer}/{word}")
    limit = _EXCLUSIVE[word]
    if schema.pop(word) and limit in schema:
        schema[word] = schema.pop(limit)


def _mend_text(schema: Schema, word: str, notes: Notes, pointer: str) -> None:
    if not isinstance(schema[word], str):
        notes.finding(f"{word!r} is not a string and is ignored", f"{pointer}/{word}")
        del schema[word]


def _mend_draft(schema: Schema, word: str, notes: Notes, pointer: str) -> None:
    if not isinstance(schema[word], str) or not _KNOWN_DRAFT.match(schema[word]):
        notes.finding("'$schema' does not name a draft from 04 to 2020-12; it is read as 2020-12", f"{pointer}/{word}")
        del schema[word]


_MEND: Final[dict[str, Callable[[Schema, str, Notes, str], None]]] = {
    "required": _mend_required,
    "type": _mend_type,
    "$schema": _mend_draft,
    **dict.fromkeys(_EXCLUSIVE, _mend_exclusive),
    **dict.fromkeys(_TEXTS, _mend_text),
}


# ----------------------------------------------------------------------------------------------------------------------
# ``enum`` and ``const``: literals where Python has them, types elsewhere.


def flat_values(schema: Schema, pointer: str, notes: Notes) -> Schema:
    """The flat node of a schema that lists its values."""
    listed = schema.get("enum", [schema.get("const")])
    # Only what is in the file has a pointer.
    listing = "enum" if "enum" in schema else "const"
    if not isinstance(listed, list):
        return notes.problem("'enum' must be a list of values", f"{pointer}/enum")
    if any(word in ASSERTIONS and word not in ("enum", "const", "type") for word in schema):
        notes.enforce("enum", pointer)
    values = list({json_key(value): value for value in reversed(listed)}.values())[::-1]
    if "const" in schema:
        values = [value for value in values if same_json(value, schema["const"])]
    types = types_of(schema)
    fitting = [value for value in values if types is None or any(has_type(value, one) for one in types)]
    if not fitting:
        in_enum = "no value is valid: 'enum' is empty, or 'type' excludes all of its values"
        in_const = "no value is valid: 'type' excludes the value of 'const'"
        notes.finding(in_enum if listing == "enum" else in_const, f"{pointer}/{listing}")
        notes.enforce("enum", pointer)
    elif len(fitting) < len(values):
        notes.finding("'enum' has values that 'type' excludes", f"{pointer}/enum")
    # Where none fits, the listed ones are shown, and refused.
    return _literals(fitting or values, pointer, notes)


def _literals(values: list[object], pointer: str, notes: Notes) -> Schema:
    plain = [int(value) if isinstance(value, float) else value for value in values if _is_plain(value)]
    kinds = dict.fromkeys(json_type(value) for value in values if not _is_plain(value))
    if kinds or not values:
        notes.enforce("enum", pointer)
    branches: list[Schema] = [*([{"enum": plain}] if plain else []), *({"type": kind} for kind in kinds)]
    if len(branches) > 1:
        return {"anyOf": branches}
    return branches[0] if branches else notes.lose(Loss.NEVER_VALID, pointer, is_reported=True)


def _is_plain(value: object) -> bool:
    """Whether a value can be in a ``Literal``."""
    return not isinstance(value, dict | list) and json_type(value) != "number"
