"""What a ``$ref`` means inside one document. Nothing is fetched, and no reference raises, whatever it holds."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from toolkit.jsonschema.keywords import ASSERTIONS, Schema
from toolkit.jsonschema.pointer import find_at, split_pointer
from toolkit.jsonschema.walk import subschemas

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
