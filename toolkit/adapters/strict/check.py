"""The checker of strict schemas: what a provider would refuse, and where.

It shares nothing with the transform but the list of what is taken, so that each can reveal mistakes of the other.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from toolkit.adapters.strict.receipt import Problem
from toolkit.adapters.strict.rules import ANNOTATIONS, ANYWHERE, OPENAI, StrictRules
from toolkit.adapters.values import JsonDict
from toolkit.schema.accepts import has_type
from toolkit.schema.keywords import TYPES, References, find_at, join_pointer, split_pointer, types_of

MAX_FOUND: Final = 100
MAX_DEPTH: Final = 64
_DEFINITIONS: Final = ("$defs", "definitions")


class RequestShare(NamedTuple):
    """What one schema uses of the limits that a provider sets for a whole request."""

    optional: int
    unions: int


def check_strict(schema: object, rules: StrictRules = OPENAI) -> list[Problem]:
    """Everything that strict mode would refuse, at most a hundred problems; an empty list for a schema it takes.

    >>> check_strict({"type": "object", "properties": {}, "required": [], "additionalProperties": False})
    []
    >>> check_strict({"type": "object", "properties": {}})[0].why
    "'additionalProperties' must be false"
    """
    checker = _Checker(schema, rules)
    checker.check()
    return checker.found


def request_share(schema: object, rules: StrictRules) -> RequestShare:
    """How many optional properties and unions a schema has."""
    checker = _Checker(schema, rules)
    checker.check()
    return RequestShare(checker.optional, checker.unions)


class _Checker:
    def __init__(self, root: object, rules: StrictRules) -> None:
        self.root = root
        self._rules = rules
        self._references = References(root)
        self.found: list[Problem] = []
        self._properties = 0
        self._characters = 0
        self._listed = 0
        self.optional = 0
        self.unions = 0
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
        self.unions += 1
        self._check_keywords(node, pointer, ("anyOf", *ANNOTATIONS))
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
        self.unions += isinstance(node["type"], list)
        allowed = [word for name in types for word in self._rules.keywords[name]]
        self._check_keywords(node, pointer, (*ANYWHERE, *allowed))
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
        for word in (*OPENAI.keywords["number"], "minItems", "maxItems"):
            if word in node and not has_type(node[word], "integer" if word.endswith("Items") else "number"):
                self._say(join_pointer(pointer, word), "must be a number")
        most = self._rules.most_min_items
        if most is not None and has_type(node.get("minItems"), "integer") and node["minItems"] > most:
            self._say(join_pointer(pointer, "minItems"), f"may be at most {most}")

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
        for word in ANNOTATIONS:
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
        many, most = self._rules.many_in_enum, self._rules.max_many
        if many is not None and most is not None and len(texts) > many and sum(map(len, texts)) > most:
            self._say(
                join_pointer(pointer, "enum"), f"more than {many} strings that together have over {most} characters"
            )

    def _check_object(self, node: JsonDict, pointer: str, depth: int, level: int) -> None:
        if node.get("additionalProperties") is not False:
            self._say(pointer, "'additionalProperties' must be false")
        names = node.get("properties")
        if not isinstance(names, dict):
            self._say(pointer, "an object must have 'properties'")
            return
        self._check_required(node, names, pointer)
        most = self._rules.max_levels
        if most is not None and level > most:
            self._say(pointer, f"more than {most} levels of nested objects")
        self._properties += len(names)
        self._characters += sum(map(len, names))
        place = join_pointer(pointer, "properties")
        inner = [(schema, join_pointer(place, name), depth + 1, level) for name, schema in names.items()]
        self._pending += reversed(inner)

    def _check_required(self, node: JsonDict, names: JsonDict, pointer: str) -> None:
        may_be_absent = not names or not self._rules.all_required
        required = node.get("required", [] if may_be_absent else None)
        listed = sorted(map(str, required)) if isinstance(required, list) else None
        if listed is None or len(set(listed)) < len(listed) or not names.keys() >= set(listed):
            self._say(pointer, "'required' must list properties of the object, each once")
        elif self._rules.all_required and listed != sorted(names):
            self._say(pointer, "'required' must list every property and nothing else")
        else:
            self.optional += len(names) - len(listed)

    def _check_string(self, node: JsonDict, pointer: str) -> None:
        word = node.get("format", "uuid")
        if not isinstance(word, str) or word not in self._rules.formats:
            self._say(join_pointer(pointer, "format"), f"{str(word)[:40]!r} is not a format that strict mode supports")
        pattern = node.get("pattern", "")
        if "pattern" in node and not (isinstance(pattern, str) and self._rules.takes_pattern(pattern)):
            self._say(
                join_pointer(pointer, "pattern"), "this pattern is not supported: no lookaround, no back-references"
            )

    def _check_loops(self, root: JsonDict) -> None:
        """References that lead back to themselves: at all, or before any property or item was asked for."""
        places = [join_pointer("", word, name) for word in _DEFINITIONS for name in _section(root, word)]
        if not self._rules.recursive:
            places.append("")
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
        """Where the references of a schema lead; where a schema may contain itself, those met before a property or item."""
        found, pending = [], [node]
        while pending:
            one = pending.pop()
            if isinstance(one, dict):
                place = self._references.pointer_of(one.get("$ref"))
                found += [place] if place or (place == "" and not self._rules.recursive) else []
                pending += one["anyOf"] if isinstance(one.get("anyOf"), list) else []
                if not self._rules.recursive:
                    pending += [one.get("items"), *_section(one, "properties").values()]
        return found

    def _check_sizes(self) -> None:
        rules = self._rules
        sizes = (
            (self._properties, rules.max_properties, "properties"),
            (self._listed, rules.max_enum, "values in enums"),
            (self._characters, rules.max_names, "characters in names and listed values"),
            (self.optional, rules.max_optional, "properties that are not required"),
            (self.unions, rules.max_unions, "schemas with 'anyOf' or several types"),
        )
        for count, most, what in sizes:
            if most is not None and count > most:
                self._say("", f"{count} {what}: at most {most} are allowed")


def _section(root: JsonDict, word: str) -> JsonDict:
    section = root.get(word)
    return section if isinstance(section, dict) else {}
