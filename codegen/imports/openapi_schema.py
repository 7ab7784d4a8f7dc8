"""The files of an OpenAPI document; and its schemas -> JSON Schema 2020-12 with their own ``$defs``.

Promise: nothing is downloaded, and nothing outside the document's folder is read.

A tool's input and output are separate documents: requests have no ``readOnly`` properties and responses no ``writeOnly``
ones, so these are left out there, and out of ``required``.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias
from urllib.parse import unquote

from toolkit.codegen.schema.keywords import mistake_in_pattern
from toolkit.errors import SpecError, nearest
from toolkit.schema.checks import MAX_SCHEMA_NODES
from toolkit.schema.keywords import DEFINITIONS, SUBSCHEMA_LISTS, SUBSCHEMA_MAPS, SUBSCHEMAS, UNIONS, split_pointer
from toolkit.schema.problems import MAX_PROBLEMS, Finding, Problems, Unreadable, kind, pointer_of, quote
from toolkit.schema.spec import Json
from toolkit.schema.spec_files import read_below
from toolkit.schema.spec_text import read_json, read_yaml

# ----------------------------------------------------------------------------------------------------------------------
# Files and the targets of references

MAX_DOCUMENT_BYTES: Final = 32 * 1024 * 1024
MAX_FILES: Final = 500
_ELSEWHERE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|/")


@dataclass(frozen=True, slots=True)
class DocumentNode:
    """A value and its place: the file, relative to the document's folder, and the keys that lead to it."""

    value: Json
    file: str
    path: tuple[str, ...] = ()

    @property
    def pointer(self) -> str:
        return pointer_of(self.path)

    @property
    def mapping(self) -> dict[str, Json]:
        """The value if it is an object, else an empty object."""
        return self.value if isinstance(self.value, dict) else {}

    def text(self, key: str) -> str:
        value = self.mapping.get(key)
        return value if isinstance(value, str) else ""

    def is_set(self, key: str) -> bool:
        return self.mapping.get(key) is True

    def at(self, key: str | int) -> DocumentNode:
        """The value at a key or an index, which must exist."""
        value = self.value[key] if isinstance(self.value, list) and isinstance(key, int) else self.mapping[str(key)]
        return DocumentNode(value, self.file, (*self.path, str(key)))

    def below(self, *keys: str) -> DocumentNode | None:
        """The value that these keys lead to, or None."""
        node = self
        for key in keys:
            if key not in node.mapping:
                return None
            node = node.at(key)
        return node

    def children(self) -> Iterator[tuple[str, DocumentNode]]:
        """The keys of an object or the items of a list."""
        keys: list[str | int] = list(range(len(self.value))) if isinstance(self.value, list) else [*self.mapping]
        return ((str(key), self.at(key)) for key in keys)


class Documents:
    """All files of one document, each read when something first refers to it, and their mistakes."""

    def __init__(self, document: Path, source: str) -> None:
        self._folder = document.parent
        self._source_folder = posixpath.dirname(source)
        self._values: dict[str, Json] = {}
        self._problems: dict[str, Problems] = {}
        self._reported: set[tuple[str, str, str]] = set()
        self._bytes_left = MAX_DOCUMENT_BYTES
        self.notes: Final[dict[Finding, None]] = {}
        """Notes for the person who imports, without repetitions."""
        self._full = False
        self.root: Final = DocumentNode(self._read(document.name), document.name)

    # -- mistakes ----------------------------------------------------------------------------------------------------

    def add(self, message: str, node: DocumentNode) -> None:
        """Reports a mistake once."""
        mistake = (message, node.file, node.pointer)
        if mistake in self._reported or self._full:
            return
        self._reported.add(mistake)
        try:
            self._problems_in(node.file).add(message, node.pointer)
        except Unreadable as reason:
            self._problems_in(node.file).add_unreadable(reason)
            self._full = True

    def note(self, message: str, node: DocumentNode) -> None:
        self.notes[self.finding(message, node)] = None

    def finding(self, message: str, node: DocumentNode) -> Finding:
        return Finding(message, self._problems_in(node.file).source, node.pointer)

    def raise_problems(self) -> None:
        found = [finding for problems in self._problems.values() for finding in problems.found]
        if found:
            raise SpecError(found)

    def _problems_in(self, file: str) -> Problems:
        source = posixpath.normpath(posixpath.join(self._source_folder, file))
        return self._problems.setdefault(file, Problems(source))

    # -- files and references ----------------------------------------------------------------------------------------

    def _read(self, file: str) -> Json:
        problems = self._problems_in(file)
        try:
            if len(self._values) >= MAX_FILES:
                raise Unreadable(f"the document has more than {MAX_FILES} files")
            text = read_below(self._folder, file, self._bytes_left)
            self._bytes_left -= len(text.encode())
            value = (
                read_json(text, problems) if file.endswith(".json") else read_yaml(text, problems, keys_as_text=True)
            )
        except Unreadable as reason:
            if len(problems.found) <= MAX_PROBLEMS:
                problems.add_unreadable(reason)
            value = None
        self._values[file] = value
        return value

    def resolve(self, reference: Json, node: DocumentNode) -> DocumentNode | None:
        """The target of ``reference``, which is in ``node``; None, and a mistake is reported, if there is none."""
        at = node.below("$ref") or node
        if not isinstance(reference, str):
            self.add(f"'$ref' must be a string, not {kind(reference)}", at)
            return None
        name, _, fragment = reference.partition("#")
        if _ELSEWHERE.match(name):
            self.add(
                f"{quote(reference)} is not followed: nothing is downloaded; save the file in the document's folder",
                at,
            )
            return None
        file = node.file
        if name:
            file = posixpath.normpath(posixpath.join(posixpath.dirname(node.file), unquote(name)))
        if file == ".." or file.startswith("../"):
            self.add(
                f"{quote(reference)} is not followed: it is outside the document's folder; move the file into it", at
            )
            return None
        return self._resolve_pointer(reference, file, unquote(fragment), at)

    def _resolve_pointer(self, reference: str, file: str, fragment: str, at: DocumentNode) -> DocumentNode | None:
        if fragment and not fragment.startswith("/"):
            self.add(
                f"{quote(reference)} is not followed: write a JSON pointer, such as '#/components/schemas/Pet'", at
            )
            return None
        if file not in self._values:
            self._read(file)
        if self._values[file] is None:
            self.add(f"{quote(reference)} is in a file that could not be read", at)
            return None
        found = DocumentNode(self._values[file], file)
        for key in split_pointer(fragment) if fragment != "/" else ():
            is_index = isinstance(found.value, list) and key.isdecimal() and int(key) < len(found.value)
            if is_index:
                found = found.at(int(key))
            elif key in found.mapping:
                found = found.at(key)
            else:
                near = nearest(key, found.mapping)
                self.add(f"{quote(reference)} does not exist{near and f'.{near}'}", at)
                return None
        return found

    def follow(self, node: DocumentNode) -> DocumentNode | None:
        """``node``, or the final target of its reference; None, and a mistake is reported, if there is none."""
        visited = {(node.file, node.path)}
        while "$ref" in node.mapping:
            target = self.resolve(node.mapping["$ref"], node)
            if target is None:
                return None
            if (target.file, target.path) in visited:
                self.add("the reference is circular", node)
                return None
            visited.add((target.file, target.path))
            node = target
        return node

    def follow_to_object(self, node: DocumentNode) -> DocumentNode | None:
        """As ``follow``, but the target must be an object."""
        found = self.follow(node)
        if found is None or isinstance(found.value, dict):
            return found
        self.add(f"this must be an object, not {kind(found.value)}", found)
        return None


# ----------------------------------------------------------------------------------------------------------------------
# Schemas

Direction: TypeAlias = Literal["request", "response"]
Schema: TypeAlias = dict[str, Json]

_HIDDEN: Final[dict[Direction, str]] = {"request": "readOnly", "response": "writeOnly"}
_NAMED: Final = SUBSCHEMA_MAPS - DEFINITIONS - {"dependencies"}
_LISTED: Final = SUBSCHEMA_LISTS - {"items"}
_SINGLE: Final = (SUBSCHEMAS - {"additionalItems"}) | {"contentSchema"}
# Converted separately (see below), about XML or web pages, or only valid in the original document.
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
# Kept next to a "$ref" in 3.0: the standard says to ignore all keywords there, but authors mean these.
_KEPT_WITH_REF: Final = ("default", "deprecated", "description", "readOnly", "title", "writeOnly")
_ANNOTATIONS: Final = ("default", "deprecated", "description", "examples", "readOnly", "title", "writeOnly")
_COMBINED: Final = ("$ref", "allOf", "anyOf", "oneOf", "not", "const")
_NOT_IN_KEYS: Final = re.compile(r"[^A-Za-z0-9_.-]+")

MAX_DEFINED: Final = 5000
"""Limit for the number of values in all definitions of one tool's input or output."""
_DEFS: Final = "#/$defs/"
_Identity: TypeAlias = tuple[str, tuple[str, ...]]


class SchemaTooLarge(Exception):
    """A schema has more values than a spec may hold."""


@dataclass(frozen=True, slots=True)
class _ConvertedDefinition:
    schema: Json
    size: int
    refers_to: tuple[str, ...]


class Schemas:
    """The schemas of one document in one direction. Each is converted once, even if many tools refer to it."""

    def __init__(self, documents: Documents, direction: Direction, *, legacy: bool) -> None:
        self._documents = documents
        self._hidden_word = _HIDDEN[direction]
        self._legacy = legacy
        self._keys: dict[_Identity, str] = {}
        self._nodes: dict[str, DocumentNode] = {}
        self._definitions: dict[str, _ConvertedDefinition] = {}
        self._hidden_names: dict[_Identity, frozenset[str]] = {}

    def root(self, schema: Json) -> tuple[Schema, list[str]]:
        """A converted schema as a complete document, with the ``$defs`` it reaches; a root reference is replaced by its
        target. Also the names of the definitions that were left open."""
        plain: Schema = schema if isinstance(schema, dict) else {} if schema is True else {"not": {}}
        if plain.keys() == {"$ref"}:
            target = self.definition(str(plain["$ref"]))
            plain = target if isinstance(target, dict) else plain
        defs, left_open = self._collect_definitions(plain)
        return {**plain, "$defs": defs} if defs else plain, left_open

    def definition(self, reference: str) -> Json:
        """The target of a reference to ``$defs``."""
        return self._convert_definition(reference.removeprefix(_DEFS)).schema

    def _convert_definition(self, key: str) -> _ConvertedDefinition:
        if key not in self._definitions:
            schema = self.convert(self._nodes[key])
            self._definitions[key] = _ConvertedDefinition(schema, *_measure(schema))
        return self._definitions[key]

    def _collect_definitions(self, schema: Schema) -> tuple[dict[str, Json], list[str]]:
        """The definitions that a schema reaches, nearest first, and the names of those left open.

        In some documents every schema reaches every other. Definitions that no longer fit accept any value, so that no valid
        value is refused.
        """
        size, waiting = _measure(schema)
        if size > MAX_SCHEMA_NODES - MAX_DEFINED:
            raise SchemaTooLarge
        found: dict[str, Json] = {}
        left_open: list[str] = []
        queue, room = deque(waiting), MAX_DEFINED
        while queue:
            key = queue.popleft()
            if key in found:
                continue
            definition = self._convert_definition(key)
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

    def convert(self, node: DocumentNode, hidden: frozenset[str] = frozenset()) -> Json:
        """The schema at ``node``; ``hidden`` are property names that surrounding schemas hide."""
        if isinstance(node.value, bool):
            return node.value
        if node.value is None:
            self._documents.note("the schema is empty, so it accepts any value", node)
            return {}
        if not isinstance(node.value, dict):
            self._documents.add(f"a schema must be an object, not {kind(node.value)}", node)
            return {}
        for word in _ANCHORS:
            if word in node.value:
                self._documents.add(f"{word!r} is not supported: use a '$ref' with a JSON pointer", node.at(word))
        result = self._convert_reference(node) if "$ref" in node.value else self._convert_keywords(node, hidden)
        if self._legacy and node.is_set("nullable"):
            result = _add_null(result)
        return result

    def _convert_keywords(self, node: DocumentNode, hidden: frozenset[str]) -> Schema:
        hidden |= self._find_hidden_names(node)
        result: Schema = {}
        for word, inner in node.children():
            result.update(self._convert_keyword(word, inner, node, hidden))
        if self._legacy:
            _convert_exclusive_limits(result)
        return result

    def _convert_keyword(self, word: str, inner: DocumentNode, node: DocumentNode, hidden: frozenset[str]) -> Schema:
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
            self._documents.note("the pattern cannot be matched in linear time, so only the service checks it", inner)
            return {"x-pattern": inner.value}
        if word == "discriminator":
            return {word: self._convert_discriminator(inner, node)}
        return {} if word in _LEFT_OUT else {word: inner.value}

    def _convert_reference(self, node: DocumentNode) -> Schema:
        target = self._documents.resolve(node.mapping["$ref"], node)
        if target is None or self._documents.follow(node) is None:
            return {}
        result: Schema = {"$ref": f"{_DEFS}{self._key(target)}"}
        for word, inner in node.children():
            if not self._legacy or word in _KEPT_WITH_REF or word.startswith("x-"):
                result.update(self._convert_keyword(word, inner, node, frozenset()))
        return result

    def _key(self, target: DocumentNode) -> str:
        identity = (target.file, target.path)
        if identity not in self._keys:
            plain = _NOT_IN_KEYS.sub("_", _name(target))
            taken = plain in self._nodes
            digest = hashlib.sha256(repr(identity).encode()).hexdigest()[:6]
            self._keys[identity] = f"{plain}_{digest}" if taken else plain
            self._nodes[self._keys[identity]] = target
        return self._keys[identity]

    # -- properties of the other direction -----------------------------------------------------------------------------

    def _is_hidden(self, schema: DocumentNode) -> bool:
        target: DocumentNode | None = schema
        for _ in range(MAX_SCHEMA_NODES):
            if target is None or target.is_set(self._hidden_word):
                return target is not None
            if "$ref" not in target.mapping:
                return False
            target = self._documents.resolve(target.mapping["$ref"], target)
        return False

    def _find_hidden_names(self, node: DocumentNode) -> frozenset[str]:
        """The property names hidden in an object, including the parts of its ``allOf``."""
        identity = (node.file, node.path)
        if identity in self._hidden_names:
            return self._hidden_names[identity]
        self._hidden_names[identity] = frozenset()  # in the meantime, for a schema that contains itself
        properties, parts = node.below("properties"), node.below("allOf")
        found = {name for name, schema in (properties.children() if properties else ()) if self._is_hidden(schema)}
        for _, part in parts.children() if parts else ():
            found |= self._find_hidden_names(part)
        if "$ref" in node.mapping:
            target = self._documents.resolve(node.mapping["$ref"], node)
            found |= self._find_hidden_names(target) if target else set()
        self._hidden_names[identity] = frozenset(found)
        return self._hidden_names[identity]

    # -- discriminators: kept for readers of the schema ------------------------------------------------------

    def _convert_discriminator(self, node: DocumentNode, owner: DocumentNode) -> Json:
        """The discriminator with a mapping to the names in our ``$defs``."""
        mapping = node.below("mapping")
        if mapping is None or not mapping.mapping:
            return node.value
        options = {str(option.mapping["$ref"]): option for option in _alternatives(owner) if "$ref" in option.mapping}
        renamed: Schema = {word: self._convert_mapping(target, options) for word, target in mapping.mapping.items()}
        return {**node.mapping, "mapping": renamed}

    def _convert_mapping(self, target: Json, options: dict[str, DocumentNode]) -> Json:
        option = options.get(str(target)) or options.get(f"#/components/schemas/{target}")
        found = None if option is None else self._documents.resolve(option.mapping["$ref"], option)
        return target if found is None else f"{_DEFS}{self._key(found)}"


def _alternatives(owner: DocumentNode) -> Iterator[DocumentNode]:
    for word in UNIONS[::-1]:
        listed = owner.below(word)
        yield from (option for _, option in listed.children()) if listed else ()


def _name(target: DocumentNode) -> str:
    """The name of a definition: its key, or the name of its file if it is the whole file."""
    if not target.path:
        return target.file.rpartition("/")[2].partition(".")[0] or "document"
    container = target.path[-2] if len(target.path) > 1 else ""
    if container in ("schemas", "$defs", "definitions"):
        return target.path[-1]
    return "_".join(target.path[-3:])


def _examples(node: DocumentNode) -> Schema:
    listed = node.mapping.get("examples")
    if isinstance(listed, list):
        return {"examples": listed}
    return {"examples": [node.mapping["example"]]} if "example" in node.mapping else {}


def _convert_exclusive_limits(schema: Schema) -> None:
    """In 3.0 ``exclusiveMinimum`` is a boolean next to ``minimum``; since 3.1 it is a number of its own."""
    for word, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(schema.get(word), bool) and schema.pop(word) and limit in schema:
            schema[word] = schema.pop(limit)


def _add_null(schema: Schema) -> Schema:
    """A schema that is ``nullable`` in 3.0. An ``enum`` without null gets it: authors mean it."""
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


def _measure(value: Json) -> tuple[int, tuple[str, ...]]:
    """The number of values in a schema, and the definitions they refer to, in order."""
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
