"""JSON Schema, draft-04 to 2020-12, as data: keywords, types, pointers, references and patterns; walking a schema, and its
outline for people.

The tables of keywords say which hold schemas, and which can refuse a value of which type. A keyword in none of them is an
annotation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import unquote

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


# ----------------------------------------------------------------------------------------------------------------------
# The types that a schema names.

TYPES: Final = tuple(TYPE_WORDS)


def types_of(schema: Schema) -> list[str] | None:
    """The types that ``type`` names; None where it names none or is malformed.

    >>> types_of({"type": ["string", "null"]}), types_of({"minLength": 1})
    (['string', 'null'], None)
    """
    return as_types(schema.get("type"))


def as_types(value: Any) -> list[str] | None:
    """The value of ``type`` as a list; None for one that is malformed."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return value
    return None


_MEANT: Final = {
    "any": "omit 'type'",
    "bool": "write 'boolean'",
    "dict": "write 'object'",
    "float": "write 'number'",
    "double": "write 'number'",
    "int": "write 'integer'",
    "list": "write 'array'",
    "long": "write 'integer'",
    "none": "write 'null'",
    "str": "write 'string'",
    "text": "write 'string'",
    "tuple": "write 'array'",
}


def unknown_type(names: Iterable[str]) -> str:
    """The sentence for types that JSON Schema does not know.

    >>> unknown_type(["float"]).partition("; ")[2]
    "instead of 'float', write 'number'"
    """
    name = next((name for name in names if name.lower() in _MEANT), None)
    meant = "" if name is None else f"; instead of {name!r}, {_MEANT[name.lower()]}"
    return f"'type' must be one of {', '.join(sorted(TYPES))}, or a list of them{meant}"


# ----------------------------------------------------------------------------------------------------------------------
# JSON pointers (RFC 6901): where in a document something is.


def escape_key(key: str | int) -> str:
    """A key as one part of a pointer.

    >>> escape_key("a/b~c")
    'a~1b~0c'
    """
    return str(key).replace("~", "~0").replace("/", "~1")


def unescape_key(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def join_pointer(pointer: str, *keys: str | int) -> str:
    """The pointer to a key or an index below another pointer.

    >>> join_pointer("/properties", "a/b", 0)
    '/properties/a~1b/0'
    """
    return "".join([pointer, *(f"/{escape_key(key)}" for key in keys)])


def split_pointer(pointer: str) -> list[str]:
    """The keys that a pointer leads through.

    >>> split_pointer("/properties/a~1b")
    ['properties', 'a/b']
    """
    return [unescape_key(part) for part in pointer.split("/")[1:]]


def find_at(root: object, keys: Sequence[str]) -> tuple[Any, int]:
    """What these keys lead to, and how many of them exist: the last value that does, where not all do.

    >>> find_at({"a": [1, 2]}, ["a", "1"]), find_at({"a": [1, 2]}, ["a", "7"])
    ((2, 2), ([1, 2], 1))
    """
    value: Any = root
    for count, key in enumerate(keys):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and _is_index(key) and int(key) < len(value):
            value = value[int(key)]
        else:
            return value, count
    return value, len(keys)


def _is_index(key: str) -> bool:
    # Bounded: Python refuses to read numbers of thousands of digits.
    return key.isascii() and key.isdecimal() and len(key) <= 18


# ----------------------------------------------------------------------------------------------------------------------
# Patterns as ECMA-262 reads them, which JSON Schema asks for: ``\d``, ``\w`` and ``\s`` are classes of ASCII.
#
# The linear-time engine behind the generated types reads them as classes of Unicode, so for it they are written out. White
# space has a few characters outside ASCII in ECMA-262.

_SPACE: Final = r"\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_SETS: Final = {r"\d": "0-9", r"\w": "0-9A-Za-z_", r"\s": _SPACE}
_OUTSIDE: Final = {
    **{name: f"[{members}]" for name, members in _SETS.items()},
    **{name.upper(): f"[^{members}]" for name, members in _SETS.items()},
}
# Inside brackets the engine takes a set in a set, which a negation needs.
_INSIDE: Final = {**_OUTSIDE, **_SETS}
_TOKEN: Final = re.compile(r"\\.|[\[\]]|[^\\\[\]]+", re.DOTALL)


def for_linear_engine(pattern: str) -> str:
    r"""The pattern with its classes written out; one without them stays as it is.

    >>> for_linear_engine(r"^\d+[\w-]$")
    '^[0-9]+[0-9A-Za-z_-]$'
    """
    if not any(name in pattern for name in _OUTSIDE):
        return pattern
    written = []
    is_inside = False
    for token in _TOKEN.findall(pattern):
        written.append((_INSIDE if is_inside else _OUTSIDE).get(token, token))
        is_inside = token == "[" or (is_inside and token != "]")
    return "".join(written)


# ----------------------------------------------------------------------------------------------------------------------
# Walking a schema: every schema inside it with its pointer, and copies with each inner schema changed.

Keys: TypeAlias = tuple[str] | tuple[str, str | int]


def children(schema: Schema) -> Iterator[tuple[Keys, Any]]:
    """Whatever is where a schema contains a schema, well-formed or not, with the keys that lead there.

    >>> list(children({"items": True, "enum": [{}], "anyOf": [{}], "properties": {"a": {}}}))
    [(('items',), True), (('anyOf', 0), {}), (('properties', 'a'), {})]
    """
    for word, value in schema.items():
        if word in SUBSCHEMA_LISTS and isinstance(value, list):
            yield from (((word, at), item) for at, item in enumerate(value))
        elif word in SUBSCHEMA_MAPS and isinstance(value, dict):
            # Up to draft-07 a value of ``dependencies`` may also be a list of names.
            yield from (((word, key), item) for key, item in value.items() if not isinstance(item, list))
        elif word in SUBSCHEMAS:
            yield (word,), value


def subschemas(schema: object) -> Iterator[tuple[str, Schema]]:
    """The schema itself and every schema inside it, each with its pointer, in the order of the document."""
    pending: list[tuple[str, object]] = [("", schema)]
    while pending:
        pointer, node = pending.pop()
        if isinstance(node, dict):
            yield pointer, node
            inner = [(join_pointer(pointer, *keys), child) for keys, child in children(node)]
            pending += reversed(inner)


def map_children(schema: Schema, change: Callable[[Any, str], Any], pointer: str = "") -> Schema:
    """A copy in which ``change`` has replaced each schema directly inside; it is also given that schema's pointer."""
    made = dict(schema)
    for keys, child in children(schema):
        word, changed = keys[0], change(child, join_pointer(pointer, *keys))
        if len(keys) == 1:
            made[word] = changed
        else:
            if made[word] is schema[word]:
                made[word] = schema[word].copy()
            made[word][keys[1]] = changed
    return made


# ----------------------------------------------------------------------------------------------------------------------
# What a ``$ref`` means inside one document. Nothing is fetched, and no reference raises, whatever it holds.

_OF_JSON_SCHEMA: Final = re.compile(r"https?://json-schema\.org/draft")
_OLD_DRAFTS: Final = re.compile(r"^https?://json-schema\.org/draft-0[3-7]/schema#?$")
_IS_POINTER: Final = re.compile(r"#(/|$)")
_ANCHORS: Final = ("$anchor", "$dynamicAnchor")
_IDS: Final = ("$id", "id")


class ReferenceTarget(NamedTuple):
    """A place in the document, and what is there."""

    pointer: str
    schema: Any


class References:
    """The references of one document. Making one costs nothing: the document is read when a reference is met.

    A reference is a JSON pointer (``#``, ``#/$defs/x``) or the name of an anchor (``#x``). Below a nested ``$id`` a pointer
    means another document, so no reference is followed in a document that has one.
    """

    def __init__(self, root: object) -> None:
        self.root: Final = root
        dialect = root.get("$schema") if isinstance(root, dict) else None
        self.ignores_siblings: Final = isinstance(dialect, str) and _OLD_DRAFTS.match(dialect) is not None
        """Up to draft-07 the keywords next to a reference have no effect."""

    def pointer_of(self, ref: object) -> str | None:
        """The place that a reference names by pointer ("" for the root); None for any other reference."""
        if not isinstance(ref, str) or not _IS_POINTER.match(ref) or self._has_bases:
            return None
        return unquote(ref[1:])

    def find(self, ref: object) -> ReferenceTarget | None:
        """Where a reference leads, by pointer or by anchor; None where that is nowhere in this document.

        >>> References({"$defs": {"a b": {"type": "null"}}}).find("#/$defs/a%20b")
        ReferenceTarget(pointer='/$defs/a b', schema={'type': 'null'})
        """
        pointer = self.pointer_of(ref)
        if pointer is None:
            return self._anchors.get(ref[1:]) if isinstance(ref, str) and ref.startswith("#") else None
        keys = split_pointer(pointer)
        schema, count = find_at(self.root, keys)
        return ReferenceTarget(pointer, schema) if count == len(keys) else None

    def follow(self, schema: object) -> Any:
        """The schema itself, or what its reference leads to in the end; None where that is nowhere, or a circle."""
        passed: set[str] = set()
        while isinstance(schema, dict) and "$ref" in schema:
            target = self.find(schema["$ref"])
            if target is None or target.pointer in passed:
                return None
            passed.add(target.pointer)
            schema = target.schema
        return schema

    def without_ignored(self, schema: Schema) -> Schema:
        """The schema less what has no effect next to its reference."""
        if not self.ignores_siblings or "$ref" not in schema:
            return schema
        return {word: value for word, value in schema.items() if word == "$ref" or word not in ASSERTIONS}

    def may_lead_inside(self, ref: object) -> bool:
        """Whether a reference that is not a pointer can lead to a part of this document, or to JSON Schema's own schemas."""
        if not isinstance(ref, str):
            return False
        named = any(word in schema for _, schema in subschemas(self.root) for word in (*_ANCHORS, "$id"))
        return named or _OF_JSON_SCHEMA.match(ref) is not None

    @cached_property
    def _has_bases(self) -> bool:
        return any(_is_base(schema.get("$id")) for pointer, schema in subschemas(self.root) if pointer)

    @cached_property
    def _anchors(self) -> dict[str, ReferenceTarget]:
        found: dict[str, ReferenceTarget] = {}
        for pointer, schema in () if self._has_bases else subschemas(self.root):
            names = [schema.get(word) for word in _ANCHORS]
            # Up to draft-07 an identifier of this form is an anchor.
            names += [_anchor_in(schema.get(word)) for word in _IDS]
            for name in names:
                if isinstance(name, str):
                    found.setdefault(name, ReferenceTarget(pointer, schema))
        return found


def _is_base(identifier: object) -> bool:
    return identifier is not None and _anchor_in(identifier) is None


def _anchor_in(identifier: object) -> str | None:
    return identifier[1:] if isinstance(identifier, str) and identifier.startswith("#") else None


# ----------------------------------------------------------------------------------------------------------------------
# A schema in a few lines for people: what a tool takes, what it returns.

# Keywords by which a schema without a type shows which it means.
_IMPLIED: Final = (("properties", "object"), ("additionalProperties", "object"), ("items", "array"))
_MAX_DEPTH: Final = 3


class OutlineRow(NamedTuple):
    """One property: ``*`` behind the name of a required one, type and default, description."""

    name: str
    type: str
    description: str


def outline(schema: Schema | None) -> list[OutlineRow]:
    """One row for each property, followed by those of what it holds (``todos[].status``); else the type of the whole.

    >>> outline({"properties": {"a": {"type": "integer", "default": 1}}, "required": ["a"]})
    [OutlineRow(name='a*', type='integer = 1', description='')]
    """
    if schema is None:
        return [OutlineRow("", "text", "")]
    references = References(schema)
    found = references.follow(schema)
    schema = found if isinstance(found, dict) else schema
    if "properties" not in schema:
        return [OutlineRow("", "nothing" if schema.get("additionalProperties") is False else _type(schema), "")]
    return list(_rows(schema, references, "", ())) or [OutlineRow("", "nothing", "")]


def _rows(schema: Schema, references: References, prefix: str, above: tuple[int, ...]) -> Iterator[OutlineRow]:
    required = schema.get("required", ())
    for name, node in schema["properties"].items():
        node = node if isinstance(node, dict) else {}
        default = f" = {json.dumps(node['default'])}" if "default" in node else ""
        described = " ".join(str(node.get("description", "")).split())
        yield OutlineRow(f"{prefix}{name}{'*' if name in required else ''}", f"{_type(node)}{default}", described)
        suffix, held = _held_object(node, references)
        # What holds itself is listed once.
        if held is not None and id(held) not in above and len(above) < _MAX_DEPTH:
            yield from _rows(held, references, f"{prefix}{name}{suffix}.", (*above, id(schema), id(held)))


def _held_object(node: Any, references: References) -> tuple[str, Schema | None]:
    """The object with properties that a property is, or has as its items."""
    suffix = ""
    for _ in range(_MAX_DEPTH):
        node = references.follow(node)
        if not isinstance(node, dict):
            return suffix, None
        if isinstance(node.get("properties"), dict):
            return suffix, node
        options = next((node[word] for word in UNIONS if word in node), ())
        objects = [option for option in options if references.follow(option) != {"type": "null"}]
        if len(objects) == 1:
            node = objects[0]
        elif isinstance(node.get("items"), dict):
            suffix, node = f"{suffix}[]", node["items"]
        else:
            return suffix, None
    return suffix, None


def _type(node: Any) -> str:
    """The type of a schema in a few words.

    >>> _type({"type": "array", "items": {"type": ["string", "null"]}})
    'array of string or null'
    """
    if not isinstance(node, dict):
        return "any value"
    if "$ref" in node:
        return unescape_key(unquote(str(node["$ref"]).rpartition("/")[2]))
    if "enum" in node or "const" in node:
        return "one of " + ", ".join(map(str, node.get("enum", [node.get("const")])))
    for word in UNIONS:
        if word in node:
            return " or ".join(map(_type, node[word]))
    if "allOf" in node and "type" not in node:
        return " and ".join(dict.fromkeys(map(_type, node["allOf"])))
    kind = node.get("type") or next((kind for word, kind in _IMPLIED if word in node), "any value")
    if kind == "array" and "items" in node:
        return f"array of {_type(node['items'])}"
    if kind == "object" and isinstance(node.get("additionalProperties"), dict):
        return f"object of {_type(node['additionalProperties'])}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)
