"""The checker of strict schemas: what OpenAI would refuse, and where.

It shares nothing with the transform but the list of what OpenAI takes, so that each can reveal mistakes of the other.
"""

from __future__ import annotations

from typing import Any, Final

from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.strict import rules
from toolkit.adapters.strict.receipt import Problem
from toolkit.jsonschema.pointer import find_at, join_pointer, split_pointer
from toolkit.jsonschema.references import References
from toolkit.jsonschema.types import TYPES, types_of
from toolkit.jsonschema.values import has_type

MAX_FOUND: Final = 100
MAX_DEPTH: Final = 64
_DEFINITIONS: Final = ("$defs", "definitions")


def check_strict(schema: object) -> list[Problem]:
    """Everything that strict mode would refuse, at most a hundred problems; an empty list for a schema it takes.

    >>> check_strict({"type": "object", "properties": {}, "required": [], "additionalProperties": False})
    []
    >>> check_strict({"type": "object", "properties": {}})[0].why
    "'additionalProperties' must be false"
    """
    checker = _Checker(schema)
    checker.check()
    return checker.found


class _Checker:
    def __init__(self, root: object) -> None:
        self.root = root
        self._references = References(root)
        self.found: list[Problem] = []
        self._properties = 0
        self._characters = 0
        self._listed = 0
        # A schema, where it is, how deep, and in how many objects.
        self._pending: list[tuple[Any, str, int, int]] = []

    def check(self) -> None:
        if not isinstance(self.root, dict):
            self._say("", "the root must be a schema")
            return
        self._check_root(self.root)
        self._pending.append((self.root, "", 0, 0))
        while self._pending and len(self.found) < MAX_FOUND:
            self._check_node(*self._pending.pop())
        self._check_loops(self.root)
        self._check_sizes()

    def _say(self, pointer: str, why: str) -> None:
        if len(self.found) < MAX_FOUND:
            self.found.append(Problem(pointer, why))

    def _check_root(self, root: JsonDict) -> None:
        if root.get("type") != "object":
            self._say("", "the root must be of type 'object'")
        for word in ("anyOf", "enum", "const", "$ref"):
            if word in root:
                self._say(join_pointer("", word), f"the root must not have {word!r}")
        for word in _DEFINITIONS:
            section = root.get(word, {})
            if not isinstance(section, dict):
                self._say(join_pointer("", word), "definitions must be an object of schemas")
                continue
            self._characters += sum(map(len, section))
            place = join_pointer("", word)
            self._pending += reversed([(inner, join_pointer(place, name), 1, 0) for name, inner in section.items()])

    def _check_node(self, node: Any, pointer: str, depth: int, level: int) -> None:
        if depth > MAX_DEPTH:
            self._say(pointer, f"nested deeper than {MAX_DEPTH} schemas")
        elif not isinstance(node, dict):
            self._say(pointer, "must be an object: strict mode supports no other schema")
        elif "$ref" in node:
            self._check_reference(node, pointer)
        elif "anyOf" in node:
            self._check_union(node, pointer, depth, level)
        else:
            self._check_typed(node, pointer, depth, level)

    def _check_reference(self, node: JsonDict, pointer: str) -> None:
        siblings = sorted(set(node) - {"$ref"} - (set(_DEFINITIONS) if pointer == "" else set()))
        if siblings:
            self._say(pointer, f"'$ref' must be alone, not next to {', '.join(map(repr, siblings))}")
        ref = node["$ref"]
        place = self._references.pointer_of(ref)
        # Nothing is known of how percent encoding is read.
        path = split_pointer(place) if place is not None and ref == f"#{place}" else None
        if path is None or not (not path or (len(path) == 2 and path[0] in _DEFINITIONS)):
            self._say(join_pointer(pointer, "$ref"), "must refer to the root or to a definition")
        elif self._references.find(ref) is None:
            self._say(join_pointer(pointer, "$ref"), "refers to nothing")

    def _check_union(self, node: JsonDict, pointer: str, depth: int, level: int) -> None:
        self._check_keywords(node, pointer, ("anyOf", *rules.ANNOTATIONS))
        self._check_texts(node, pointer)
        branches = node["anyOf"]
        if not isinstance(branches, list) or not branches:
            self._say(join_pointer(pointer, "anyOf"), "must be a list of schemas")
            return
        place = join_pointer(pointer, "anyOf")
        inner = [(branch, join_pointer(place, at), depth + 1, level) for at, branch in enumerate(branches)]
        self._pending += reversed(inner)

    def _check_typed(self, node: JsonDict, pointer: str, depth: int, level: int) -> None:
        types = self._types(node, pointer)
        if types is None:
            return
        allowed = [word for name in types for word in rules.KEYWORDS[name]]
        self._check_keywords(node, pointer, (*rules.ANYWHERE, *allowed))
        self._check_texts(node, pointer)
        self._check_values(node, pointer, types)
        if "object" in types:
            self._check_object(node, pointer, depth, level + 1)
        if "array" in types:
            if "items" in node:
                self._pending.append((node["items"], join_pointer(pointer, "items"), depth + 1, level))
            else:
                self._say(pointer, "an array must have 'items'")
        if "string" in types:
            self._check_string(node, pointer)
        for word in (*rules.KEYWORDS["number"], "minItems", "maxItems"):
            if word in node and not has_type(node[word], "integer" if word.endswith("Items") else "number"):
                self._say(join_pointer(pointer, word), "must be a number")

    def _types(self, node: JsonDict, pointer: str) -> list[str] | None:
        if "type" not in node:
            self._say(pointer, "a schema must have a 'type', an 'anyOf' or a '$ref'")
            return None
        known = types_of(node)
        if not known or not all(name in TYPES for name in known) or len(set(known)) < len(known):
            self._say(join_pointer(pointer, "type"), "must be a type, or a type and 'null'")
            return None
        if len([name for name in known if name != "null"]) > 1:
            self._say(join_pointer(pointer, "type"), "may be one type and 'null'; write more types as an 'anyOf'")
        return known

    def _check_keywords(self, node: JsonDict, pointer: str, allowed: tuple[str, ...]) -> None:
        for word in node:
            if word not in allowed and not (pointer == "" and word in _DEFINITIONS):
                self._say(join_pointer(pointer, word), f"{word!r} is not permitted here")

    def _check_texts(self, node: JsonDict, pointer: str) -> None:
        for word in rules.ANNOTATIONS:
            if word in node and not isinstance(node[word], str):
                self._say(join_pointer(pointer, word), "must be a string")

    def _check_values(self, node: JsonDict, pointer: str, types: list[str]) -> None:
        values = node.get("enum", [])
        if "enum" in node and (not isinstance(values, list) or not values):
            self._say(join_pointer(pointer, "enum"), "must list values")
            return
        given = [*values, node["const"]] if "const" in node else values
        if any(isinstance(value, dict | list) for value in given):
            self._say(pointer, "'enum' values must be strings, numbers, booleans or null")
        elif not all(any(has_type(value, name) for name in types) for value in given):
            self._say(pointer, "a listed value is not of the schema's type")
        texts = [value for value in values if isinstance(value, str)]
        self._listed += len(values)
        self._characters += sum(len(str(value)) for value in given)
        if len(texts) > rules.MANY_IN_ENUM and sum(map(len, texts)) > rules.MAX_MANY:
            self._say(
                join_pointer(pointer, "enum"),
                f"more than {rules.MANY_IN_ENUM} strings that together have over {rules.MAX_MANY} characters",
            )

    def _check_object(self, node: JsonDict, pointer: str, depth: int, level: int) -> None:
        if node.get("additionalProperties") is not False:
            self._say(pointer, "'additionalProperties' must be false")
        names, required = node.get("properties"), node.get("required", [] if node.get("properties") == {} else None)
        if not isinstance(names, dict):
            self._say(pointer, "an object must have 'properties'")
            return
        if not isinstance(required, list) or sorted(map(str, required)) != sorted(names):
            self._say(pointer, "'required' must list every property and nothing else")
        if level > rules.MAX_LEVELS:
            self._say(pointer, f"more than {rules.MAX_LEVELS} levels of nested objects")
        self._properties += len(names)
        self._characters += sum(map(len, names))
        place = join_pointer(pointer, "properties")
        inner = [(schema, join_pointer(place, name), depth + 1, level) for name, schema in names.items()]
        self._pending += reversed(inner)

    def _check_string(self, node: JsonDict, pointer: str) -> None:
        word = node.get("format", "uuid")
        if not isinstance(word, str) or word not in rules.FORMATS:
            self._say(join_pointer(pointer, "format"), f"{str(word)[:40]!r} is not a format that strict mode supports")
        pattern = node.get("pattern", "")
        if not isinstance(pattern, str) or not rules.takes_pattern(pattern):
            self._say(join_pointer(pointer, "pattern"), "a pattern must not use lookaround or back-references")

    def _check_loops(self, root: JsonDict) -> None:
        """References that lead back to themselves before any property or item was asked for."""
        places = [join_pointer("", word, name) for word in _DEFINITIONS for name in _section(root, word)]
        ends: set[str] = set()
        for start in places:
            path: list[str] = []
            onward = [iter([start])]
            while onward:
                place = next(onward[-1], None)
                if place is None:
                    onward.pop()
                    ends.update(path[-1:])
                    del path[-1:]
                elif place in path:
                    self._say(place, "a reference is circular")
                    return
                elif place not in ends:
                    path.append(place)
                    onward.append(iter(self._leads_to(find_at(root, split_pointer(place))[0])))

    def _leads_to(self, node: Any) -> list[str]:
        """Where the references of a schema lead that are met before any property or item."""
        found, pending = [], [node]
        while pending:
            one = pending.pop()
            if isinstance(one, dict):
                place = self._references.pointer_of(one.get("$ref"))
                found += [place] if place else []
                pending += one["anyOf"] if isinstance(one.get("anyOf"), list) else []
        return found

    def _check_sizes(self) -> None:
        sizes = (
            (self._properties, rules.MAX_PROPERTIES, "properties"),
            (self._listed, rules.MAX_ENUM, "values in enums"),
            (self._characters, rules.MAX_NAMES, "characters in names and listed values"),
        )
        for count, most, what in sizes:
            if count > most:
                self._say("", f"{count} {what}: at most {most} are allowed")


def _section(root: JsonDict, word: str) -> JsonDict:
    section = root.get(word)
    return section if isinstance(section, dict) else {}
