"""What the generator does with each JSON Schema keyword, draft-07 to 2020-12. A keyword in no row is an annotation.

``TYPED`` keywords shape the generated types and are enforced by them. ``ENFORCED`` keywords express what types cannot: they
are judged at run time by ``toolkit.schema.enforce``, on the wire form of a value that its types have accepted already.
``ANNOTATION`` keywords are kept in the definition that the model reads and have no other effect. ``REFUSED`` keywords stop
generation with their sentence. Nothing is dropped silently: a typed keyword in a place where its type cannot show it, such
as a limit without a type, is enforced there.
"""

from __future__ import annotations

from typing import Final

from toolkit.jsonschema.keywords import ANNOTATIONS, ASSERTIONS, TYPE_WORDS, Schema

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
