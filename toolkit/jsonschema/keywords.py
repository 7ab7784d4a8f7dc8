"""The keywords of JSON Schema, draft-04 to 2020-12: which hold schemas, which can refuse a value, and of which type.

Everything that walks, merges or judges schemas builds on these tables. A keyword in none of them is an annotation.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

Schema: TypeAlias = dict[str, Any]

SUBSCHEMAS: Final = frozenset(
    {
        "additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then",
        "unevaluatedItems", "unevaluatedProperties",
    }
)  # fmt: skip
"""The keywords whose value is a schema (``items`` may also be a list of them)."""
SUBSCHEMA_LISTS: Final = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
SUBSCHEMA_MAPS: Final = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)

UNIONS: Final = ("anyOf", "oneOf")
APPLIED_IN_PLACE: Final = ("allOf", *UNIONS, "if", "then", "else", "not", "dependentSchemas", "dependencies")
"""The keywords whose schemas judge the same value as the schema they are in."""
REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")

_NUMBERS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
TYPE_WORDS: Final[dict[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType", "contentSchema"),
    "number": _NUMBERS,
    "integer": _NUMBERS,
    "boolean": (),
    "object": (
        "properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties",
        "maxProperties", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties",
    ),
    "array": (
        "items", "minItems", "maxItems", "prefixItems", "additionalItems", "uniqueItems", "contains", "minContains",
        "maxContains", "unevaluatedItems",
    ),
    "null": (),
}  # fmt: skip
"""The keywords that say something about values of one type only; a value of another type passes them."""
APPLIES_TO: Final[dict[str, tuple[str, ...]]] = {
    word: tuple(name for name, theirs in TYPE_WORDS.items() if word in theirs)
    for words in TYPE_WORDS.values()
    for word in words
}

DEFINITIONS: Final = frozenset({"$defs", "definitions"})
IDENTIFIERS: Final = frozenset(
    {"$anchor", "$comment", "$dynamicAnchor", "$id", "$recursiveAnchor", "$schema", "$vocabulary"}
)
"""The keywords about the schema as a document."""
ANNOTATIONS: Final = frozenset(
    {
        "contentEncoding", "contentMediaType", "contentSchema", "default", "deprecated", "description", "example",
        "examples", "format", "readOnly", "title", "writeOnly",
    }
)  # fmt: skip
"""The keywords that describe a value and never refuse one; ``format`` is not asserted."""
ASSERTIONS: Final = frozenset(
    {"type", "enum", "const", *REFERENCES, *APPLIED_IN_PLACE, *APPLIES_TO, "if", "then", "else"} - ANNOTATIONS
)
"""The keywords that can refuse a value."""


def has_assertions(schema: Schema) -> bool:
    """Whether a schema can refuse any value at all."""
    return not ASSERTIONS.isdisjoint(schema)
