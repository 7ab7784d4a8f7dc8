"""What the generator does with each JSON Schema keyword. A word that stands in no row is an annotation.

``TYPED`` words shape the generated types and are enforced by them, ``ANNOTATION`` words are kept in the definition the
model reads and have no other effect, ``REFUSED`` words stop generation with their sentence. Nothing is dropped silently.
"""

from __future__ import annotations

from typing import Final

TYPED: Final = frozenset(
    {
        "$defs", "$ref", "additionalProperties", "anyOf", "const", "default", "definitions", "enum",
        "exclusiveMaximum", "exclusiveMinimum", "items", "maxItems", "maxLength", "maximum", "minItems", "minLength",
        "minimum", "multipleOf", "oneOf", "pattern", "properties", "required", "type",
    }
)  # fmt: skip

ANNOTATION: Final = frozenset(
    {
        "$comment", "$id", "$schema", "contentEncoding", "contentMediaType", "contentSchema", "deprecated", "description",
        "example", "examples", "format", "readOnly", "title", "writeOnly",
    }
)  # fmt: skip

_RUNS_CODE: Final = "it can name Python code to import, and a spec is data"
_NOT_TYPED: Final = (
    "the generated model could not enforce it; express it with types, enums or limits, or check it in the handler"
)

REFUSED: Final[dict[str, str]] = {
    "customBasePath": _RUNS_CODE,
    "customTypePath": _RUNS_CODE,
    "default_factory": _RUNS_CODE,
    "$anchor": "refer to definitions by '#/$defs/<name>'",
    "$dynamicAnchor": "refer to definitions by '#/$defs/<name>'",
    "$dynamicRef": "refer to definitions by '#/$defs/<name>'",
    "$recursiveAnchor": "refer to definitions by '#/$defs/<name>'",
    "$recursiveRef": "refer to definitions by '#/$defs/<name>'",
    "additionalItems": _NOT_TYPED,
    "allOf": "write the merged object, or refer to one definition",
    "contains": _NOT_TYPED,
    "dependencies": _NOT_TYPED,
    "dependentRequired": _NOT_TYPED,
    "dependentSchemas": _NOT_TYPED,
    "else": _NOT_TYPED,
    "if": _NOT_TYPED,
    "maxContains": _NOT_TYPED,
    "maxProperties": _NOT_TYPED,
    "minContains": _NOT_TYPED,
    "minProperties": _NOT_TYPED,
    "not": _NOT_TYPED,
    "patternProperties": _NOT_TYPED,
    "prefixItems": _NOT_TYPED,
    "propertyNames": _NOT_TYPED,
    "then": _NOT_TYPED,
    "unevaluatedItems": _NOT_TYPED,
    "unevaluatedProperties": _NOT_TYPED,
    "uniqueItems": _NOT_TYPED,
}

LIMITS: Final[dict[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength", "pattern"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "array": ("items", "minItems", "maxItems"),
    "object": ("properties", "required", "additionalProperties"),
    "boolean": (),
    "null": (),
}
"""Which typed words say something about which type; beside another type they have no effect, as in JSON Schema."""


def refusal(keyword: str, value: object) -> str | None:
    """Why this keyword stops generation, or None."""
    if keyword.startswith("x-python"):
        return _RUNS_CODE
    if keyword == "uniqueItems" and value is False:
        return None
    return REFUSED.get(keyword)
