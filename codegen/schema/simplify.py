"""What flat types accept: their defaults, which branches exclude each other, and simpler unions that accept the same.

``simplify`` is the last step of flattening. It does not change what a type accepts: ``bool | Literal[True]`` becomes
``bool``, ``Literal["a"] | Literal["b"]`` becomes ``Literal["a", "b"]``, a union says each of its branches once, and aliases
never hold null. A format is only a word, unless it has a type of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, TypeAlias

from toolkit.codegen.package.python_names import field_names
from toolkit.codegen.schema.document import NULL, Document, name_of, references, referred_name
from toolkit.schema.accepts import Judge, are_disjoint, has_type, json_key, json_type, same_json
from toolkit.schema.keywords import TYPES, Schema

# ----------------------------------------------------------------------------------------------------------------------
# Defaults: whether a flat type accepts one, and its form in generated code.

MAX_STEPS: Final = 2_000_000
"""For one default; a lookup that counts steps ends sooner, with a mistake in the schema."""

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
# Branches that exclude each other, as far as types and constants show; and the tag that tells classes apart.


def exclude_each_other(branches: list[Schema], lookup: Lookup) -> bool:
    """Whether no value can be accepted by two of the branches, which are flat; ``lookup`` finds their references."""
    return all(_excludes(one, other, lookup) for index, one in enumerate(branches) for other in branches[:index])


def find_tag(branches: list[Schema], objects: Mapping[str, Schema]) -> str | None:
    """The property by which pydantic can choose among classes: required text, of one value that no other class has."""
    nodes = [objects.get(referred_name(branch) or "") for branch in branches]
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


def simplify(document: Document, typed_formats: Collection[str] = ()) -> None:
    """Rewrites the types of a document in place, and drops aliases that lost their last reference.

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
        parts = [part for part in rewritten["anyOf"] if part != NULL]
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
            name = name_of(node["$ref"])
            if self._keeps_name(name):
                yield {"$ref": node["$ref"]}
            else:
                for part in _parts(self._aliases[name]):
                    yield from self._branches(part)
            if name in self._nullable:
                yield NULL
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
        tag = find_tag([part for part in node.get("anyOf", ()) if part != NULL], self._objects)
        return node if tag is None else {**node, "discriminator": {"propertyName": tag}}

    def _simpler(self, branches: list[Schema]) -> list[Schema]:
        """The branches, each once, without those that a plain type next to them covers; literals in one list."""
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
        target = self._aliases.get(name_of(node["$ref"]), node) if "$ref" in node else node
        return target if "type" in target else node


def _is_within(limits: Schema, kinds: list[str]) -> bool:
    """Whether a node with limits is of a type that is a branch without limits."""
    kind = limits.get("type")
    return kind in kinds or kind == "integer" and "number" in kinds


def _parts(node: Schema) -> list[Schema]:
    """What a node accepts other than null."""
    return [part for part in node.get("anyOf", [node]) if part != NULL]


def _joined(branches: list[Schema]) -> Schema:
    branches = [NULL if node == {"enum": [None]} else _as_boolean(node) for node in branches]
    return branches[0] if len(branches) == 1 else {"anyOf": branches}


def _as_boolean(node: Schema) -> Schema:
    """``Literal[True, False]`` is ``bool``."""
    values = node.get("enum", ())
    return {"type": "boolean"} if len(values) == 2 and all(isinstance(value, bool) for value in values) else node


def _has_null(node: Schema, aliases: dict[str, Schema], passed: frozenset[str] = frozenset()) -> bool:
    if "anyOf" in node:
        return any(_has_null(branch, aliases, passed) for branch in node["anyOf"])
    if "$ref" in node:
        name = name_of(node["$ref"])
        return name in aliases and name not in passed and _has_null(aliases[name], aliases, passed | {name})
    return node.get("type") == "null" or None in node.get("enum", ())


def _referred(document: Document) -> Iterator[str]:
    """The names that the types of a document refer to; an alias that only refers to itself is not among them."""
    for owner, node in document.nodes().items():
        yield from (name for name in references(node) if name != owner or owner not in document.aliases)
