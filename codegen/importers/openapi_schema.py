"""Schemas as OpenAPI 3.0 and 3.1 write them -> JSON Schema 2020-12 with ``$defs`` of its own.

A tool's input and its output are documents of their own: in what is sent nobody gives a ``readOnly`` property, in what is
answered no ``writeOnly`` one is found, so both are left out there and asked for by no ``required``.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from typing import Any, Final, Literal, TypeAlias

from codegen.importers.openapi_documents import Documents, Node
from toolkit.spec.check import MAX_SCHEMA_NODES
from toolkit.spec.model import Json
from toolkit.spec.problems import kind

Direction: TypeAlias = Literal["request", "response"]
Schema: TypeAlias = dict[str, Json]

_HIDDEN: Final[dict[Direction, str]] = {"request": "readOnly", "response": "writeOnly"}
_NAMED: Final = ("properties", "patternProperties", "dependentSchemas")
_LISTED: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE: Final = (
    "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then",
    "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
# Said in another way (see below), about XML or a web page, or about the document this schema came from.
_LEFT_OUT: Final = frozenset(
    {
        "$defs",
        "$id",
        "$ref",
        "$schema",
        "definitions",
        "example",
        "examples",
        "externalDocs",
        "nullable",
        "required",
        "xml",
    }
)
_ANCHORS: Final = ("$anchor", "$dynamicAnchor", "$dynamicRef")
# What may stand beside a "$ref" in 3.0 and be heard: the standard says to ignore it all, but writers mean these.
_HEARD_BESIDE_REF: Final = ("default", "deprecated", "description", "readOnly", "title", "writeOnly")
_ANNOTATIONS: Final = ("default", "deprecated", "description", "examples", "readOnly", "title", "writeOnly")
_COMBINED: Final = ("$ref", "allOf", "anyOf", "oneOf", "not", "const")
_NOT_IN_KEYS: Final = re.compile(r"[^A-Za-z0-9_.-]+")


class TooLarge(Exception):
    """What one tool's schema refers to is more than a spec may hold."""


class Schemas:
    """The schema of one tool's input or output: ``convert`` its parts, then ask for ``defs``."""

    def __init__(self, documents: Documents, direction: Direction, *, legacy: bool) -> None:
        self._documents = documents
        self._hidden_word = _HIDDEN[direction]
        self._legacy = legacy
        self._keys: dict[tuple[str, tuple[str, ...]], str] = {}
        self._defs: dict[str, Json] = {}
        self._waiting: deque[tuple[str, Node]] = deque()
        self._discriminators: list[tuple[Schema, Node]] = []
        self._hidden_names: dict[tuple[str, tuple[str, ...]], frozenset[str]] = {}
        self._left = MAX_SCHEMA_NODES

    def defs(self) -> dict[str, Json]:
        """The definitions that what was converted refers to, and those they refer to."""
        while self._waiting:
            key, node = self._waiting.popleft()
            self._defs[key] = self.convert(node)
        for schema, node in self._discriminators:
            schema["mapping"] = {word: self._mapped(target, node) for word, target in _mapping(node).items()}
        self._discriminators.clear()
        return self._defs

    def root(self, schema: Json) -> Schema:
        """A converted schema as a document: with its ``$defs``, and itself no reference where it can be said at once."""
        defs = self.defs()
        plain = {} if schema is True else {"not": {}} if schema is False else schema
        assert isinstance(plain, dict)
        key = str(plain.get("$ref", "")).removeprefix("#/$defs/")
        if plain.keys() == {"$ref"} and isinstance(defs.get(key), dict):
            target = defs[key]
            assert isinstance(target, dict)
            rest = {name: definition for name, definition in defs.items() if name != key}
            plain, defs = dict(target), defs if _mentions([target, rest], plain["$ref"]) else rest
        return {**plain, "$defs": defs} if defs else plain

    # -- one schema --------------------------------------------------------------------------------------------------

    def convert(self, node: Node, hidden: frozenset[str] = frozenset()) -> Json:
        """The schema at ``node``; ``hidden`` are names that schemas around it hide."""
        self._left -= 1
        if self._left < 0:
            raise TooLarge
        if isinstance(node.value, bool):
            return node.value
        if not isinstance(node.value, dict):
            self._documents.add(f"a schema must be an object, not {kind(node.value)}", node)
            return {}
        for word in _ANCHORS:
            if word in node.value:
                self._documents.add(f"{word!r} is not followed: refer by a JSON pointer", node.at(word))
        result = self._reference(node) if "$ref" in node.value else self._plain(node, hidden)
        if self._legacy and node.is_set("nullable"):
            result = _or_null(result)
        return result

    def _plain(self, node: Node, hidden: frozenset[str]) -> Schema:
        hidden |= self._hidden_in(node)
        result: Schema = {}
        for word, inner in node.children():
            result.update(self._keyword(word, inner, node, hidden))
        if self._legacy:
            _with_numeric_limits(result)
        return result

    def _keyword(self, word: str, inner: Node, node: Node, hidden: frozenset[str]) -> Schema:
        if word in _NAMED and isinstance(inner.value, dict):
            named: Schema = {
                name: self.convert(schema)
                for name, schema in inner.children()
                if word != "properties" or not self._is_hidden(schema)
            }
            return {word: named}
        if word in _LISTED and isinstance(inner.value, list):
            passed = hidden if word == "allOf" else frozenset[str]()
            return {word: [self.convert(schema, passed) for _, schema in inner.children()]}
        if word in _SINGLE and isinstance(inner.value, dict | bool):
            return {word: self.convert(inner)}
        if word == "required" and isinstance(inner.value, list):
            required = [name for name in inner.value if not isinstance(name, str) or name not in hidden]
            return {word: required} if required else {}
        if word in ("example", "examples"):
            return _examples(node)
        if word == "discriminator":
            return {word: self._discriminator(inner)}
        return {} if word in _LEFT_OUT else {word: inner.value}

    def _reference(self, node: Node) -> Schema:
        target = self._documents.resolve(node.mapping["$ref"], node)
        if target is None or self._documents.target(node) is None:
            return {}
        result: Schema = {"$ref": f"#/$defs/{self._key(target)}"}
        for word, inner in node.children():
            if not self._legacy or word in _HEARD_BESIDE_REF or word.startswith("x-"):
                result.update(self._keyword(word, inner, node, frozenset()))
        return result

    def _key(self, target: Node) -> str:
        identity = (target.file, target.path)
        if identity not in self._keys:
            plain = _NOT_IN_KEYS.sub("_", _name(target))
            taken = plain in self._keys.values()
            digest = hashlib.sha256(repr(identity).encode()).hexdigest()[:6]
            self._keys[identity] = f"{plain}_{digest}" if taken else plain
            self._waiting.append((self._keys[identity], target))
        return self._keys[identity]

    # -- properties of the other direction -----------------------------------------------------------------------------

    def _is_hidden(self, schema: Node) -> bool:
        target: Node | None = schema
        for _ in range(MAX_SCHEMA_NODES):
            if target is None or target.is_set(self._hidden_word):
                return target is not None
            if "$ref" not in target.mapping:
                return False
            target = self._documents.resolve(target.mapping["$ref"], target)
        return False

    def _hidden_in(self, node: Node) -> frozenset[str]:
        """The names hidden in an object, also in the parts it is composed of."""
        identity = (node.file, node.path)
        if identity in self._hidden_names:
            return self._hidden_names[identity]
        self._hidden_names[identity] = frozenset()  # while it is being found out, for one that contains itself
        properties, parts = node.below("properties"), node.below("allOf")
        found = {name for name, schema in (properties.children() if properties else ()) if self._is_hidden(schema)}
        for _, part in parts.children() if parts else ():
            found |= self._hidden_in(part)
        if "$ref" in node.mapping:
            target = self._documents.resolve(node.mapping["$ref"], node)
            found |= self._hidden_in(target) if target else set()
        self._hidden_names[identity] = frozenset(found)
        return self._hidden_names[identity]

    # -- which of several objects an object is: kept for who reads it ------------------------------------------------------

    def _discriminator(self, node: Node) -> Json:
        if not _mapping(node):
            return node.value
        schema: Schema = dict(node.mapping)
        self._discriminators.append((schema, node))
        return schema

    def _mapped(self, target: Json, node: Node) -> Json:
        """A reference of ``mapping`` as one to ``$defs``, if that is there."""
        if not isinstance(target, str):
            return target
        reference = target if "/" in target or "#" in target else f"#/components/schemas/{target}"
        found = self._documents.resolve(reference, node)
        key = self._keys.get((found.file, found.path)) if found else None
        return target if key is None else f"#/$defs/{key}"


def _mapping(node: Node) -> dict[str, Json]:
    mapping = node.below("mapping")
    return mapping.mapping if mapping else {}


def _name(target: Node) -> str:
    """What a definition is called: its own key, or its file's where it is the whole of one."""
    if not target.path:
        return target.file.rpartition("/")[2].partition(".")[0] or "document"
    container = target.path[-2] if len(target.path) > 1 else ""
    if container in ("schemas", "$defs", "definitions"):
        return target.path[-1]
    return "_".join(target.path[-3:])


def _examples(node: Node) -> Schema:
    listed = node.mapping.get("examples")
    if isinstance(listed, list):
        return {"examples": listed}
    return {"examples": [node.mapping["example"]]} if "example" in node.mapping else {}


def _with_numeric_limits(schema: Schema) -> None:
    """3.0 says of ``minimum`` whether it is exclusive; since then the exclusive limit is a number of its own."""
    for word, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(schema.get(word), bool) and schema.pop(word) and limit in schema:
            schema[word] = schema.pop(limit)


def _or_null(schema: Schema) -> Schema:
    """A schema that 3.0 calls ``nullable``. An ``enum`` without null gets one: who writes the word means it."""
    if any(word in schema for word in _COMBINED):
        around = {word: schema[word] for word in schema if word in _ANNOTATIONS or word.startswith("x-")}
        core: Schema = {word: value for word, value in schema.items() if word not in around}
        return {"anyOf": [core, {"type": "null"}], **around}
    result = dict(schema)
    if isinstance(result.get("type"), str) and result["type"] != "null":
        result["type"] = [result["type"], "null"]
    enum = result.get("enum")
    if isinstance(enum, list) and None not in enum:
        result["enum"] = [*enum, None]
    return result


def _mentions(value: Any, reference: Json) -> bool:
    pending: list[Any] = [value]
    while pending:
        found = pending.pop()
        if isinstance(found, dict):
            if found.get("$ref") == reference:
                return True
            pending += found.values()
        elif isinstance(found, list):
            pending += found
    return False
