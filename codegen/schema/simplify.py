"""The last step of flattening: unions without repetition, and aliases that never hold null.

Nothing here changes what a type accepts. ``bool | Literal[True]`` becomes ``bool``, ``Literal["a"] | Literal["b"]`` becomes
``Literal["a", "b"]``, and a union says each of its branches once. A format is only a word, unless it has a type of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, TypeAlias

from toolkit.codegen.package.python_names import field_names
from toolkit.codegen.schema.document import Document, Loss, Notes, refers_to
from toolkit.schema.accepts import Judge, are_disjoint, has_type, json_key, json_type, same_json
from toolkit.schema.keywords import ASSERTIONS, TYPES, Schema, join_pointer, map_children, types_of, unknown_type

# ----------------------------------------------------------------------------------------------------------------------
# Defaults of a flat schema: whether it accepts them, and their form in generated code.

MAX_STEPS: Final = 2_000_000
"""For one default; a lookup that counts steps as well ends sooner, with a mistake of the schema."""

Lookup: TypeAlias = Callable[[str], Schema | None]
"""What a reference of a flat schema leads to; None while that is still being read."""


def accepts(flat: Schema, value: Any, lookup: Lookup) -> bool:
    """Whether a flat schema accepts a value; what is still being read accepts anything."""
    return Judge(flat, lambda ref: lookup(ref) or {}, max_steps=MAX_STEPS).fits(value, flat)


def settle_default(flat: Schema, value: Any, lookup: Lookup) -> Any:
    """An accepted value as the types of generated code have it: 2.0 becomes 2 where an integer is declared."""
    node = branch_for(flat, value, lookup)
    if "enum" in node:
        return next(wanted for wanted in node["enum"] if same_json(value, wanted))
    if isinstance(value, list):
        return [settle_default(node.get("items", {}), item, lookup) for item in value]
    if isinstance(value, dict):
        return {key: settle_default(_property(node, key), item, lookup) for key, item in value.items()}
    return int(value) if isinstance(value, float) and node.get("type") == "integer" else value


def branch_for(flat: Schema, value: Any, lookup: Lookup, *, through_refs: bool = True) -> Schema:
    """The branch of unions, and what references mean, that takes the value; without branches the node itself."""
    if "$ref" in flat and through_refs:
        return branch_for(lookup(flat["$ref"]) or {}, value, lookup)
    if "anyOf" in flat:
        fitting = next(branch for branch in flat["anyOf"] if accepts(branch, value, lookup))
        return branch_for(fitting, value, lookup, through_refs=through_refs)
    return flat


def _property(node: Schema, key: str) -> Schema:
    found = node.get("properties", {}).get(key, node.get("additionalProperties"))
    return found if isinstance(found, dict) else {}


# ----------------------------------------------------------------------------------------------------------------------
# Whether two branches of a union can accept the same value, as far as types and constants show.


def exclude_each_other(branches: list[Schema], lookup: Lookup) -> bool:
    """Whether no value can be accepted by two of the branches, which are flat; ``lookup`` finds their references."""
    return all(_excludes(one, other, lookup) for index, one in enumerate(branches) for other in branches[:index])


def find_tag(branches: list[Schema], objects: Mapping[str, Schema]) -> str | None:
    """The property by which pydantic can choose among classes: required text, of one value that no other class has."""
    nodes = [objects.get(branch.get("$ref", "").rpartition("/")[2]) for branch in branches]
    constants = [_tags(node) if node is not None else {} for node in nodes]
    if len(constants) < 2:
        return None
    for name in constants[0]:
        values = [value for found in constants for value in found.get(name, ())]
        if all(name in found for found in constants) and len(set(values)) == len(values):
            return name
    return None


def _tags(node: Schema) -> dict[str, list[object]]:
    names = field_names(node.get("properties", {}))
    constants = _constants(node, lambda ref: None)
    return {
        name: values
        for name, values in constants.items()
        # One value each: datamodel-code-generator would replace a list of values by one of its own.
        if names[name] == name and len(values) == 1 and isinstance(values[0], str)
    }


def _excludes(one: Schema, other: Schema, lookup: Lookup) -> bool:
    if set(_types(one, lookup)).isdisjoint(_types(other, lookup)):
        return True
    if "enum" in one and "enum" in other:
        return are_disjoint(one["enum"], other["enum"])
    mine, theirs = _constants(one, lookup), _constants(other, lookup)
    return any(are_disjoint(mine[key], theirs[key]) for key in mine.keys() & theirs.keys())


def _types(flat: Schema, lookup: Lookup) -> Iterator[str]:
    node = (lookup(flat["$ref"]) or {}) if "$ref" in flat else flat
    if "enum" in node:
        yield from ("number" if json_type(v) == "integer" else json_type(v) for v in node["enum"])
    elif "anyOf" in node:
        for branch in node["anyOf"]:
            yield from _types(branch, lookup)
    elif "type" in node:
        yield "number" if node["type"] == "integer" else node["type"]
    else:
        yield from TYPES


def _constants(flat: Schema, lookup: Lookup) -> dict[str, list[object]]:
    node = (lookup(flat["$ref"]) or {}) if "$ref" in flat else flat
    properties = node.get("properties", {})
    return {key: properties[key]["enum"] for key in node.get("required", ()) if "enum" in properties.get(key, {})}


_NULL: Schema = {"type": "null"}


def simplify(document: Document, typed_formats: Collection[str] = ()) -> None:
    """Rewrites the types of a document in place, and drops aliases that nothing refers to any more.

    :param typed_formats: the formats whose texts get a type of their own, which accepts less than ``str``.
    """
    rewriter = _Rewriter(document, typed_formats)
    document.aliases = {name: rewriter.alias(node) for name, node in document.aliases.items()}
    document.objects = {name: rewriter.rewrite(node) for name, node in document.objects.items()}
    document.root = rewriter.with_tag(rewriter.rewrite(document.root))
    while unused := document.aliases.keys() - set(_referred(document)):
        document.aliases = {name: node for name, node in document.aliases.items() if name not in unused}
    document.recursive = {name for name in document.aliases if name in document.recursive or document.is_endless(name)}


class _Rewriter:
    def __init__(self, document: Document, typed_formats: Collection[str]) -> None:
        self._typed_formats = typed_formats
        self._aliases = document.aliases
        self._objects = document.objects
        self._recursive = document.recursive
        self._nullable = {name for name in document.aliases if _has_null({"$ref": name}, document.aliases)}

    def alias(self, node: Schema) -> Schema:
        """An alias without null, which is written where the alias is used: there it shows whether a field may be null."""
        rewritten = self.rewrite(node)
        if "anyOf" not in rewritten:
            return rewritten
        parts = [part for part in rewritten["anyOf"] if part != _NULL]
        parts = [{"enum": [v for v in part["enum"] if v is not None]} if "enum" in part else part for part in parts]
        return self.with_tag(_joined(parts))

    def rewrite(self, node: Schema) -> Schema:
        found = dict(node)
        if "properties" in node:
            found["properties"] = {key: self.with_tag(self.rewrite(item)) for key, item in node["properties"].items()}
        for word in ("items", "additionalProperties"):
            if isinstance(node.get(word), dict):
                found[word] = self.rewrite(node[word])
        if not {"anyOf", "enum", "$ref"} & node.keys():
            return found
        about = {word: value for word, value in found.items() if word not in ("anyOf", "enum", "$ref")}
        branches = list(self._branches(node))
        # An alias may turn out to be any value when it is finished; then so is what it is a branch of.
        return about if {} in branches else {**_joined(self._simpler(branches)), **about}

    def _branches(self, node: Schema) -> Iterator[Schema]:
        """The branches of a union, of the unions inside it, and null where an alias held it."""
        if "anyOf" in node:
            for branch in node["anyOf"]:
                yield from self._branches(branch)
        elif "$ref" in node:
            name = _name(node["$ref"])
            if self._keeps_name(name):
                yield {"$ref": node["$ref"]}
            else:
                for part in _parts(self._aliases[name]):
                    yield from self._branches(part)
            if name in self._nullable:
                yield _NULL
        elif "enum" in node:
            yield {"enum": node["enum"]}
        else:
            yield self.rewrite(node)

    def _keeps_name(self, name: str) -> bool:
        """Not the alias of a single class, and not a union whose name shows neither recursion nor a tag."""
        if name not in self._aliases:
            return True
        if not self._aliases[name]:
            return False
        parts = _parts(self._aliases[name])
        if len(parts) == 1:
            return "$ref" not in parts[0]
        return name in self._recursive or find_tag(parts, self._objects) is not None

    def with_tag(self, node: Schema) -> Schema:
        """A union of classes with the property that tells them apart, if there is one."""
        tag = find_tag([part for part in node.get("anyOf", ()) if part != _NULL], self._objects)
        return node if tag is None else {**node, "discriminator": {"propertyName": tag}}

    def _simpler(self, branches: list[Schema]) -> list[Schema]:
        """The branches, each once, without those that a plain type next to them accepts as well; literals in one list."""
        plain = [node for node in branches if self._is_plain(node)]
        kinds = [node["type"] for node in plain]
        without_format = [node["type"] for node in plain if "format" not in node]
        found: dict[object, Schema] = {}
        literals: Schema = {}
        for node in branches:
            if "enum" in node:
                values = [v for v in node["enum"] if not any(has_type(v, one) for one in kinds)]
                literals.setdefault("enum", []).extend(values)
                if literals["enum"]:
                    found.setdefault("literals", literals)
                continue
            limits = self._limits(node)
            # A branch with a format of its own stays, for the docstring, unless any other text would do.
            if node.keys() == {"type"} or not _is_within(limits, without_format if "format" in limits else kinds):
                found.setdefault(json_key(limits), node)
        if "enum" in literals:
            literals["enum"] = list({json_key(value): value for value in reversed(literals["enum"])}.values())[::-1]
        if "number" in kinds:
            found.pop(json_key({"type": "integer"}), None)
        return list(found.values())

    def _is_plain(self, node: Schema) -> bool:
        """Whether a node accepts every value of its type."""
        if not {"type"} <= node.keys() <= {"type", "format"} or node["type"] in ("array", "object"):
            return False
        return node["type"] != "string" or node.get("format") not in self._typed_formats

    def _limits(self, node: Schema) -> Schema:
        """What an alias of limits stands for; any other node itself."""
        target = self._aliases.get(_name(node["$ref"]), node) if "$ref" in node else node
        return target if "type" in target else node


def _is_within(limits: Schema, kinds: list[str]) -> bool:
    """Whether a node with limits is of a type that is a branch without limits."""
    kind = limits.get("type")
    return kind in kinds or kind == "integer" and "number" in kinds


def _parts(node: Schema) -> list[Schema]:
    """What a node accepts other than null."""
    return [part for part in node.get("anyOf", [node]) if part != _NULL]


def _joined(branches: list[Schema]) -> Schema:
    branches = [_NULL if node == {"enum": [None]} else _as_boolean(node) for node in branches]
    return branches[0] if len(branches) == 1 else {"anyOf": branches}


def _as_boolean(node: Schema) -> Schema:
    """``Literal[True, False]`` is ``bool``."""
    values = node.get("enum", ())
    return {"type": "boolean"} if len(values) == 2 and all(isinstance(value, bool) for value in values) else node


def _has_null(node: Schema, aliases: dict[str, Schema], passed: frozenset[str] = frozenset()) -> bool:
    if "anyOf" in node:
        return any(_has_null(branch, aliases, passed) for branch in node["anyOf"])
    if "$ref" in node:
        name = _name(node["$ref"])
        return name in aliases and name not in passed and _has_null(aliases[name], aliases, passed | {name})
    return node.get("type") == "null" or None in node.get("enum", ())


def _referred(document: Document) -> Iterator[str]:
    """The names that the types of a document refer to; an alias that only refers to itself is not among them."""
    for owner, node in document.nodes().items():
        yield from (name for name in refers_to(node) if name != owner or owner not in document.aliases)


def _name(ref: str) -> str:
    return ref.rpartition("/")[2]


# ----------------------------------------------------------------------------------------------------------------------
# Typos: what a schema writes in a way that JSON Schema does not know, although its meaning is clear.
#
# They are corrected before anything else looks at the schema, each with a finding; one typo must not cost a whole tool.

_KNOWN_DRAFT: Final = re.compile(r"https?://json-schema\.org/(draft-0[467]|draft/20(19-09|20-12)|schema)\b")
_TEXTS: Final = ("format", "contentEncoding", "contentMediaType")
_EXCLUSIVE: Final = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}


def mend(schema: Any, notes: Notes, pointer: str = "") -> Any:
    """The schema without its typos; where there are none, an equal one."""
    if not isinstance(schema, dict):
        return schema
    kept: Schema = {}
    for word, value in schema.items():
        if value is None and word in ASSERTIONS and word != "const":
            notes.finding(f"{word!r} is null and is ignored", join_pointer(pointer, word))
        else:
            kept[word] = value
    found = map_children(kept, lambda inner, place: mend(inner, notes, place), pointer)
    for word in [word for word in found if word in _MEND]:
        _MEND[word](found, word, notes, pointer)
    return found


def _mend_required(schema: Schema, word: str, notes: Notes, pointer: str) -> None:
    names = schema[word]
    if isinstance(names, bool):
        notes.finding("'required' is a list of names next to 'properties'; on a property it has no effect", pointer)
        del schema[word]
    elif isinstance(names, list) and all(isinstance(name, str) for name in names):
        schema[word] = list(dict.fromkeys(names))


def _mend_type(schema: Schema, word: str, notes: Notes, pointer: str) -> None:
    types = schema[word]
    if isinstance(types, list) and all(isinstance(one, str) for one in types):
        schema[word] = list(dict.fromkeys(types))
    if types == []:
        notes.problem(unknown_type(()), f"{pointer}/type")


def _mend_exclusive(schema: Schema, word: str, notes: Notes, pointer: str) -> None:
    """Up to draft-04 these were true or false, next to the limit itself."""
    if not isinstance(schema[word], bool):
        return
    notes.finding(f"{word!r} is a number since draft-06; the boolean is read as in draft-04", f"{pointer}/{word}")
    limit = _EXCLUSIVE[word]
    if schema.pop(word) and limit in schema:
        schema[word] = schema.pop(limit)


def _mend_text(schema: Schema, word: str, notes: Notes, pointer: str) -> None:
    if not isinstance(schema[word], str):
        notes.finding(f"{word!r} is not a string and is ignored", f"{pointer}/{word}")
        del schema[word]


def _mend_draft(schema: Schema, word: str, notes: Notes, pointer: str) -> None:
    if not isinstance(schema[word], str) or not _KNOWN_DRAFT.match(schema[word]):
        notes.finding("'$schema' does not name a draft from 04 to 2020-12; it is read as 2020-12", f"{pointer}/{word}")
        del schema[word]


_MEND: Final[dict[str, Callable[[Schema, str, Notes, str], None]]] = {
    "required": _mend_required,
    "type": _mend_type,
    "$schema": _mend_draft,
    **dict.fromkeys(_EXCLUSIVE, _mend_exclusive),
    **dict.fromkeys(_TEXTS, _mend_text),
}


# ----------------------------------------------------------------------------------------------------------------------
# ``enum`` and ``const``: literals where Python has them, types elsewhere.


def flat_enum(schema: Schema, pointer: str, notes: Notes) -> Schema:
    """The flat node of a schema that lists its values."""
    listed = schema.get("enum", [schema.get("const")])
    # Only what is in the file has a pointer.
    listing = "enum" if "enum" in schema else "const"
    if not isinstance(listed, list):
        return notes.problem("'enum' must be a list of values", f"{pointer}/enum")
    if any(word in ASSERTIONS and word not in ("enum", "const", "type") for word in schema):
        notes.enforce("enum", pointer)
    values = list({json_key(value): value for value in reversed(listed)}.values())[::-1]
    if "const" in schema:
        values = [value for value in values if same_json(value, schema["const"])]
    types = types_of(schema)
    fitting = [value for value in values if types is None or any(has_type(value, one) for one in types)]
    if not fitting:
        in_enum = "no value is valid: 'enum' is empty, or 'type' excludes all of its values"
        in_const = "no value is valid: 'type' excludes the value of 'const'"
        notes.finding(in_enum if listing == "enum" else in_const, f"{pointer}/{listing}")
        notes.enforce("enum", pointer)
    elif len(fitting) < len(values):
        notes.finding("'enum' has values that 'type' excludes", f"{pointer}/enum")
    # Where none fits, the listed ones are shown, and refused.
    return _literals(fitting or values, pointer, notes)


def _literals(values: list[object], pointer: str, notes: Notes) -> Schema:
    plain = [int(value) if isinstance(value, float) else value for value in values if _is_plain(value)]
    kinds = dict.fromkeys(json_type(value) for value in values if not _is_plain(value))
    if kinds or not values:
        notes.enforce("enum", pointer)
    branches: list[Schema] = [*([{"enum": plain}] if plain else []), *({"type": kind} for kind in kinds)]
    if len(branches) > 1:
        return {"anyOf": branches}
    return branches[0] if branches else notes.lose(Loss.NEVER_VALID, pointer, is_reported=True)


def _is_plain(value: object) -> bool:
    """Whether a value can be in a ``Literal``."""
    return not isinstance(value, dict | list) and json_type(value) != "number"
