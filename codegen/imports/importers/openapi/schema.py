"""Schemas as OpenAPI 3.0 and 3.1 write them -> JSON Schema 2020-12 with ``$defs`` of its own.

A tool's input and its output are documents of their own: in what is sent nobody gives a ``readOnly`` property, in what is
answered no ``writeOnly`` one is found, so both are left out there and asked for by no ``required``.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from toolkit.codegen.imports.importers.openapi.documents import Documents, Node
from toolkit.codegen.schema.limits import mistake_in_pattern
from toolkit.jsonschema.keywords import DEFINITIONS, SUBSCHEMA_LISTS, SUBSCHEMA_MAPS, SUBSCHEMAS, UNIONS
from toolkit.spec.check import MAX_SCHEMA_NODES
from toolkit.spec.model import Json
from toolkit.spec.problems import kind

Direction: TypeAlias = Literal["request", "response"]
Schema: TypeAlias = dict[str, Json]

_HIDDEN: Final[dict[Direction, str]] = {"request": "readOnly", "response": "writeOnly"}
_NAMED: Final = SUBSCHEMA_MAPS - DEFINITIONS - {"dependencies"}
_LISTED: Final = SUBSCHEMA_LISTS - {"items"}
_SINGLE: Final = (SUBSCHEMAS - {"additionalItems"}) | {"contentSchema"}
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


MAX_DEFINED: Final = 5000
"""How many values the definitions of one tool's input or output may have together."""
_DEFS: Final = "#/$defs/"
_Identity: TypeAlias = tuple[str, tuple[str, ...]]


class TooLarge(Exception):
    """One schema has more values than a spec may hold."""


@dataclass(frozen=True, slots=True)
class _Definition:
    schema: Json
    size: int
    refers_to: tuple[str, ...]


class Schemas:
    """The schemas of one document in one direction. Each is converted once, however many tools refer to it."""

    def __init__(self, documents: Documents, direction: Direction, *, legacy: bool) -> None:
        self._documents = documents
        self._hidden_word = _HIDDEN[direction]
        self._legacy = legacy
        self._keys: dict[_Identity, str] = {}
        self._nodes: dict[str, Node] = {}
        self._definitions: dict[str, _Definition] = {}
        self._hidden_names: dict[_Identity, frozenset[str]] = {}

    def root(self, schema: Json) -> tuple[Schema, list[str]]:
        """A converted schema as a document: with the ``$defs`` it reaches, and itself no reference where it can be said
        at once. Also the definitions that were too far away to be told."""
        plain: Schema = schema if isinstance(schema, dict) else {} if schema is True else {"not": {}}
        if plain.keys() == {"$ref"}:
            target = self.definition(str(plain["$ref"]))
            plain = target if isinstance(target, dict) else plain
        defs, left_open = self._reached(plain)
        return {**plain, "$defs": defs} if defs else plain, left_open

    def definition(self, reference: str) -> Json:
        """What a reference to ``$defs`` leads to."""
        return self._defined(reference.removeprefix(_DEFS)).schema

    def _defined(self, key: str) -> _Definition:
        if key not in self._definitions:
            schema = self.convert(self._nodes[key])
            self._definitions[key] = _Definition(schema, *_survey(schema))
        return self._definitions[key]

    def _reached(self, schema: Schema) -> tuple[dict[str, Json], list[str]]:
        """The definitions that a schema refers to and those they refer to, nearest first; and which of them are open.

        Some documents lead from everywhere to everything. What no longer fits accepts any value, so that nothing true is
        refused.
        """
        size, waiting = _survey(schema)
        if size > MAX_SCHEMA_NODES - MAX_DEFINED:
            raise TooLarge
        found: dict[str, Json] = {}
        left_open: list[str] = []
        queue, room = deque(waiting), MAX_DEFINED
        while queue:
            key = queue.popleft()
            if key in found:
                continue
            definition = self._defined(key)
            if definition.size < room:
                found[key] = definition.schema
                queue += definition.refers_to
                room -= definition.size
            else:
                found[key] = {}
                left_open.append(key)
                room -= 1
        return found, left_open

    # -- one schema --------------------------------------------------------------------------------------------------

    def convert(self, node: Node, hidden: frozenset[str] = frozenset()) -> Json:
        """The schema at ``node``; ``hidden`` are names that schemas around it hide."""
        if isinstance(node.value, bool):
            return node.value
        if node.value is None:
            self._documents.note("nothing is said in this schema, so it takes any value", node)
            return {}
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
        if word == "pattern" and isinstance(inner.value, str) and mistake_in_pattern(inner.value):
            self._documents.note("the pattern is none of linear time, so that only the service can judge it", inner)
            return {"x-pattern": inner.value}
        if word == "discriminator":
            return {word: self._discriminator(inner, node)}
        return {} if word in _LEFT_OUT else {word: inner.value}

    def _reference(self, node: Node) -> Schema:
        target = self._documents.resolve(node.mapping["$ref"], node)
        if target is None or self._documents.target(node) is None:
            return {}
        result: Schema = {"$ref": f"{_DEFS}{self._key(target)}"}
        for word, inner in node.children():
            if not self._legacy or word in _HEARD_BESIDE_REF or word.startswith("x-"):
                result.update(self._keyword(word, inner, node, frozenset()))
        return result

    def _key(self, target: Node) -> str:
        identity = (target.file, target.path)
        if identity not in self._keys:
            plain = _NOT_IN_KEYS.sub("_", _name(target))
            taken = plain in self._nodes
            digest = hashlib.sha256(repr(identity).encode()).hexdigest()[:6]
            self._keys[identity] = f"{plain}_{digest}" if taken else plain
            self._nodes[self._keys[identity]] = target
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

    def _discriminator(self, node: Node, owner: Node) -> Json:
        """The same, with the alternatives of the schema it stands in called as its ``$defs`` are."""
        mapping = node.below("mapping")
        if mapping is None or not mapping.mapping:
            return node.value
        options = {str(option.mapping["$ref"]): option for option in _alternatives(owner) if "$ref" in option.mapping}
        renamed: Schema = {word: self._mapped(target, options) for word, target in mapping.mapping.items()}
        return {**node.mapping, "mapping": renamed}

    def _mapped(self, target: Json, options: dict[str, Node]) -> Json:
        option = options.get(str(target)) or options.get(f"#/components/schemas/{target}")
        found = None if option is None else self._documents.resolve(option.mapping["$ref"], option)
        return target if found is None else f"{_DEFS}{self._key(found)}"


def _alternatives(owner: Node) -> Iterator[Node]:
    for word in UNIONS[::-1]:
        listed = owner.below(word)
        yield from (option for _, option in listed.children()) if listed else ()


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


def _survey(value: Json) -> tuple[int, tuple[str, ...]]:
    """How many values there are, and which definitions they refer to, in order."""
    size, found = 0, dict[str, None]()
    pending: list[Json] = [value]
    while pending:
        each = pending.pop()
        size += 1
        if isinstance(each, dict):
            reference = each.get("$ref")
            if isinstance(reference, str) and reference.startswith(_DEFS):
                found[reference.removeprefix(_DEFS)] = None
            pending += reversed(each.values())
        elif isinstance(each, list):
            pending += reversed(each)
    return size, tuple(found)
