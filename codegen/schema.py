"""One spec's schema -> its own document: flat, with a stable name for every object, ready for the generator.

Every object with properties moves to ``$defs`` under a name made of the tool and the place (``GrepOutputMatch``), so that
nothing is shared between tools and no name carries a number. Every mistake is reported at its pointer, all at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from codegen import naming
from codegen.accepts import accepts, json_type, settled
from codegen.keywords import ANNOTATION, LIMITS, TYPED, refusal
from toolkit.wire.exact import same_json

Schema: TypeAlias = dict[str, Any]

_LOCAL_REF: Final = re.compile(r"#/(\$defs|definitions)/([^/]+)")
_SHAPES: Final = ("$ref", "enum", "const", "anyOf", "oneOf", "type")


@dataclass(slots=True)
class Document:
    """A flat schema: the root, the named objects, and the named scalars and arrays that carry limits."""

    name: str
    root: Schema
    objects: dict[str, Schema] = field(default_factory=dict)
    aliases: dict[str, Schema] = field(default_factory=dict)

    def nodes(self) -> dict[str, Schema]:
        """Everything that has a name."""
        return {**self.objects, **self.aliases, self.name: self.root}


def flatten(schema: Schema, name: str, base: str) -> tuple[Document, list[str]]:
    """The document for ``schema`` with classes named ``name``, ``name + place``; and its mistakes, ``message @ pointer``."""
    walk = _Walk(schema, name)
    root = walk.object(schema, "", name) if _is_object(schema) else walk.node(schema, "", name)
    return Document(name, root, walk.objects, walk.aliases), [
        f"{text} @ {base}{pointer}" for text, pointer in walk.problems
    ]


def _is_object(schema: Schema) -> bool:
    if any(word in schema for word in _SHAPES[:-1]):
        return False
    return schema.get("type", "object") == "object" and any(word in schema for word in ("type", *LIMITS["object"]))


class _Walk:
    """The walk over one schema; ``problems`` gathers instead of raising, so that one run tells everything."""

    def __init__(self, root: Schema, name: str) -> None:
        self.root = root
        self.name = name
        self.objects: dict[str, Schema] = {}
        self.aliases: dict[str, Schema] = {}
        self.problems: list[tuple[str, str]] = []
        self.definitions: dict[str, Schema] = {}
        self.open: set[str] = set()
        self.building: set[str] = set()
        self.places: dict[str, str] = {}
        self.classes: dict[str, str] = {}

    def problem(self, text: str, pointer: str) -> Schema:
        self.problems.append((text, pointer))
        return {}

    # -- one node ----------------------------------------------------------------------------------------------------

    def node(self, schema: object, pointer: str, name: str, *, nested: bool = False) -> Schema:
        """``schema`` made flat; ``name`` is what an object found here will be called."""
        if schema is True:
            return {}
        if not isinstance(schema, dict):
            return self.problem("a schema must be an object, or true", pointer)
        self.check_keywords(schema, pointer)
        shape = next((word for word in _SHAPES if word in schema), None)
        flat = self.shaped(shape, schema, pointer, name)
        if nested and _carries_limits(flat):
            flat = self.alias(flat, pointer, name)
        return self.with_default(flat, schema, pointer)

    def shaped(self, shape: str | None, schema: Schema, pointer: str, name: str) -> Schema:
        if shape == "$ref":
            return self.reference(schema, pointer)
        if shape in ("enum", "const"):
            return self.enum(schema, pointer)
        if shape in ("anyOf", "oneOf"):
            return self.union(schema, shape, pointer, name)
        if shape == "type":
            return self.typed(schema, pointer, name)
        stray = sorted(word for word in schema if word in TYPED - {"default", "$defs", "definitions"})
        if stray:
            return self.problem(f"{stray[0]!r} needs a 'type' beside it to say what it limits", pointer)
        return {}

    def check_keywords(self, schema: Schema, pointer: str) -> None:
        for word, value in schema.items():
            sentence = refusal(word, value)
            if sentence is not None:
                self.problem(f"{word!r} is not supported: {sentence}", f"{pointer}/{_escape(word)}")

    def only_beside(self, schema: Schema, words: tuple[str, ...], pointer: str) -> None:
        """Words that would silently lose their effect beside a reference or a union."""
        allowed = {*words, "default", "$defs", "definitions"} | ANNOTATION
        for word in sorted(word for word in schema if word in TYPED - allowed):
            self.problem(f"{word!r} has no place beside {words[0]!r}; move it into the schema that is meant", pointer)

    def with_default(self, flat: Schema, schema: Schema, pointer: str) -> Schema:
        described = (
            {**flat, "description": schema["description"]} if isinstance(schema.get("description"), str) else flat
        )
        if "default" not in schema:
            return described
        default = schema["default"]
        if not accepts(flat, default, self.lookup):
            self.problem("'default' is not accepted by the schema it stands in", f"{pointer}/default")
            return described
        if isinstance(default, dict | list) and self.building & set(self.reached(flat)):
            self.problem("a 'default' that is made of the object it stands in has no end", f"{pointer}/default")
            return described
        return {**described, "default": settled(flat, default, self.lookup)}

    def reached(self, flat: Schema) -> set[str]:
        """The names of all objects that a node's type needs."""
        found: set[str] = set()
        pending: list[object] = [flat]
        while pending:
            node = pending.pop()
            if not isinstance(node, dict):
                continue
            if "$ref" in node and (name := node["$ref"].rpartition("/")[2]) not in found:
                found.add(name)
                pending.append(self.lookup(node["$ref"]))
            pending += [node.get("items"), node.get("additionalProperties"), *node.get("anyOf", ())]
            pending += node.get("properties", {}).values()
        return found

    def lookup(self, ref: str) -> Schema | None:
        name = ref.rpartition("/")[2]
        return self.objects.get(name) or self.aliases.get(name)

    # -- shapes ------------------------------------------------------------------------------------------------------

    def reference(self, schema: Schema, pointer: str) -> Schema:
        self.only_beside(schema, ("$ref",), pointer)
        ref = schema["$ref"]
        found = _LOCAL_REF.fullmatch(ref) if isinstance(ref, str) else None
        if found is None:
            return self.problem(
                "only references to '#/$defs/<name>' are followed; nothing is read from elsewhere", f"{pointer}/$ref"
            )
        section, key = found[1], found[2].replace("~1", "/").replace("~0", "~")
        target = self.root.get(section, {})
        if not isinstance(target, dict) or key not in target:
            return self.problem(f"{section} holds no {key!r}", f"{pointer}/$ref")
        place = f"/{section}/{_escape(key)}"
        if place in self.open:
            if place not in self.classes:
                return self.problem("a definition that contains itself must be an object with properties", place)
            return {"$ref": f"#/$defs/{self.classes[place]}"}
        if place not in self.definitions:
            self.open.add(place)
            self.definitions[place] = self.node(target[key], place, self.name + naming.camel(key))
            self.open.discard(place)
        flat = dict(self.definitions[place])
        flat.pop("default", None)
        flat.pop("description", None)
        return flat

    def enum(self, schema: Schema, pointer: str) -> Schema:
        self.only_beside(schema, ("enum", "const", "type"), pointer)
        listed = schema.get("enum", [schema.get("const")])
        if not isinstance(listed, list) or not listed:
            return self.problem("'enum' must be a list with at least one value", f"{pointer}/enum")
        values = listed
        if "const" in schema:
            values = [schema["const"]] if any(same_json(schema["const"], other) for other in listed) else []
        kinds = _types(schema)
        values = [
            v
            for v in values
            if kinds is None or json_type(v) in kinds or json_type(v) == "integer" and "number" in kinds
        ]
        unlike = [v for i, v in enumerate(values) if not any(same_json(v, other) for other in values[:i])]
        if not unlike:
            return self.problem("no value of 'enum' fits its 'type'", pointer)
        if any(json_type(value) in ("array", "object", "number") for value in unlike):
            return self.problem("'enum' values must be text, whole numbers, true, false or null", pointer)
        return {"enum": unlike}

    def union(self, schema: Schema, word: str, pointer: str, name: str) -> Schema:
        self.only_beside(schema, (word,), pointer)
        branches = schema[word]
        if not isinstance(branches, list) or not branches:
            return self.problem(f"{word!r} must be a list with at least one schema", f"{pointer}/{word}")
        named = sum(1 for branch in branches if not _is_null(branch)) == 1
        flat = [
            self.node(
                branch, f"{pointer}/{word}/{i}", name if named else f"{name}{_branch_name(branch, i)}", nested=True
            )
            for i, branch in enumerate(branches)
        ]
        if word == "oneOf" and not self.disjoint(flat):
            return self.problem(
                "two branches of 'oneOf' can accept one value, so its type would not be exact; use 'anyOf',"
                " or give the branches a required property with different constants",
                f"{pointer}/oneOf",
            )
        for branch in flat:
            branch.pop("default", None)
            branch.pop("description", None)
        return flat[0] if len(flat) == 1 else {"anyOf": flat}

    def disjoint(self, branches: list[Schema]) -> bool:
        """Whether no value can be accepted by two of the branches, as far as types and constants tell."""
        for index, one in enumerate(branches):
            for other in branches[:index]:
                if not self.apart(one, other):
                    return False
        return True

    def apart(self, one: Schema, other: Schema) -> bool:
        kinds, others = set(self.kinds(one)), set(self.kinds(other))
        if kinds.isdisjoint(others):
            return True
        if "enum" in one and "enum" in other:
            return not any(same_json(a, b) for a in one["enum"] for b in other["enum"])
        mine, theirs = self.constants(one), self.constants(other)
        return any(
            not any(same_json(a, b) for a in mine[key] for b in theirs[key]) for key in mine.keys() & theirs.keys()
        )

    def kinds(self, flat: Schema) -> Iterator[str]:
        node = (self.lookup(flat["$ref"]) or {"type": "object"}) if "$ref" in flat else flat
        if "enum" in node:
            yield from ("number" if json_type(v) == "integer" else json_type(v) for v in node["enum"])
        elif "anyOf" in node:
            for branch in node["anyOf"]:
                yield from self.kinds(branch)
        elif "type" in node:
            yield "number" if node["type"] == "integer" else node["type"]
        else:
            yield from LIMITS

    def constants(self, flat: Schema) -> dict[str, list[object]]:
        node = (self.lookup(flat["$ref"]) or {}) if "$ref" in flat else flat
        properties = node.get("properties", {})
        return {key: properties[key]["enum"] for key in node.get("required", ()) if "enum" in properties.get(key, {})}

    def typed(self, schema: Schema, pointer: str, name: str) -> Schema:
        kinds = _types(schema)
        if kinds is None or not kinds or any(kind not in LIMITS for kind in kinds):
            words = ", ".join(sorted(LIMITS))
            return self.problem(f"'type' must be one of {words}, or a list of them", f"{pointer}/type")
        kinds = [k for k in dict.fromkeys(kinds) if not (k == "integer" and "number" in kinds)]
        several = sum(kind != "null" for kind in kinds) > 1
        names = [name + naming.camel(kind) if several else name for kind in kinds]
        flat = [
            self.one_type(kind, schema, pointer, own, nested=len(kinds) > 1)
            for kind, own in zip(kinds, names, strict=True)
        ]
        return flat[0] if len(flat) == 1 else {"anyOf": flat}

    def one_type(self, kind: str, schema: Schema, pointer: str, name: str, *, nested: bool) -> Schema:
        if kind == "object":
            return self.named_object(schema, pointer, name)
        flat = (
            self.array(schema, pointer, name)
            if kind == "array"
            else {"type": kind, **self.limits(kind, schema, pointer)}
        )
        return self.alias(flat, pointer, name) if nested and _carries_limits(flat) else flat

    def limits(self, kind: str, schema: Schema, pointer: str) -> Schema:
        """The limits beside a type; a wrong one is told and left out, so that defaults are judged by sound ones only."""
        found: Schema = {}
        for word in LIMITS[kind]:
            if word in schema and word != "items":
                mistake = _mistake_in_limit(word, schema[word], kind)
                if mistake is None:
                    found[word] = schema[word]
                else:
                    self.problem(mistake, f"{pointer}/{word}")
        return found

    def array(self, schema: Schema, pointer: str, name: str) -> Schema:
        flat: Schema = {"type": "array", **self.limits("array", schema, pointer)}
        if "items" in schema:
            item = self.node(schema["items"], f"{pointer}/items", naming.singular(name), nested=True)
            item.pop("default", None)
            item.pop("description", None)
            flat["items"] = item
        return flat

    # -- objects -----------------------------------------------------------------------------------------------------

    def named_object(self, schema: Schema, pointer: str, name: str) -> Schema:
        """A map stays in place; an object with properties, or a closed one, becomes a class of its own."""
        closed = schema.get("additionalProperties") is False
        if not schema.get("properties") and not schema.get("required") and not closed:
            return self.object(schema, pointer, name)
        name = self.classes[pointer] = self.unused(name, pointer)
        self.objects[name] = {"type": "object"}
        self.building.add(name)
        self.objects[name] = self.object(schema, pointer, name)
        self.building.discard(name)
        return {"$ref": f"#/$defs/{name}"}

    def object(self, schema: Schema, pointer: str, name: str) -> Schema:
        if pointer == "":
            self.check_keywords(schema, pointer)
        flat: Schema = {"type": "object"}
        properties = schema.get("properties", {})
        if not isinstance(properties, dict):
            return self.problem("'properties' must be an object", f"{pointer}/properties")
        if properties:
            flat["properties"] = {
                key: self.node(value, f"{pointer}/properties/{_escape(key)}", name + naming.camel(key))
                for key, value in properties.items()
            }
        flat["required"] = self.required(schema, properties, pointer)
        extra = schema.get("additionalProperties", True)
        flat["additionalProperties"] = (
            extra
            if isinstance(extra, bool)
            else self.node(extra, f"{pointer}/additionalProperties", f"{name}Value", nested=True)
        )
        if isinstance(schema.get("description"), str):
            flat["description"] = schema["description"]
        return flat

    def required(self, schema: Schema, properties: Schema, pointer: str) -> list[str]:
        names = schema.get("required", [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            self.problem("'required' must be a list of property names", f"{pointer}/required")
            return []
        for name in names:
            if name not in properties:
                self.problem(f"'required' names {name!r}, which 'properties' does not declare", f"{pointer}/required")
        return list(dict.fromkeys(names))

    def alias(self, flat: Schema, pointer: str, name: str) -> Schema:
        name = self.unused(name, pointer)
        self.aliases[name] = flat
        return {"$ref": f"#/$defs/{name}"}

    def unused(self, name: str, pointer: str) -> str:
        """The name, with a digest of the place where another place of this tool has it already."""
        if name == self.name:
            # That is the class around this one: a model of a value that is an object or null, say.
            name = f"{name}Root"
        if self.places.setdefault(name, pointer) == pointer:
            return name
        return f"{name}X{naming.digest(pointer)}"


def _carries_limits(flat: Schema) -> bool:
    """Whether a node inside another one needs a name of its own: the generator beneath would make one up."""
    kind = flat.get("type")
    return kind not in (None, "object") and any(word in flat for word in LIMITS[kind] if word != "items")


def _types(schema: Schema) -> list[str] | None:
    kind = schema.get("type")
    if isinstance(kind, str):
        return [kind]
    if isinstance(kind, list) and all(isinstance(word, str) for word in kind):
        return kind
    return None


def _mistake_in_limit(word: str, value: Any, kind: str) -> str | None:
    if word == "pattern":
        return _mistake_in_pattern(value)
    if word in ("minLength", "maxLength", "minItems", "maxItems"):
        fits = json_type(value) == "integer" and 0 <= value <= 2**53
        return None if fits else f"{word!r} must be a whole number from 0"
    if json_type(value) not in ("integer", "number") or abs(value) > 2**63:
        return f"{word!r} must be a number from -2**63 to 2**63"
    if word == "multipleOf" and (value < 2**-63 or kind == "integer" and value != int(value)):
        return "'multipleOf' must be above 0 (2**-63 or more), and whole for an integer"
    return None


def _mistake_in_pattern(pattern: object) -> str | None:
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    if not isinstance(pattern, str):
        return "'pattern' must be text"
    try:
        SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError:
        return "'pattern' does not compile in the linear-time engine (no look-around, no back-references)"
    return None


def _is_null(branch: object) -> bool:
    return isinstance(branch, dict) and (branch.get("type") == "null" or branch.get("enum") == [None])


def _branch_name(branch: object, index: int) -> str:
    """What tells a branch from its siblings: its title, its type, else its place."""
    if isinstance(branch, dict):
        for word in ("title", "type"):
            text = branch.get(word)
            if isinstance(text, str) and naming.camel(text).isidentifier():
                return naming.camel(text)
    return f"Option{index + 1}"


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
