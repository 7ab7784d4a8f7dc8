"""One spec's schema -> its own document: flat, with a stable name for every object, ready for the generator.

Every object with properties moves to ``$defs`` under a name made of the tool and the place (``GrepOutputMatch``), so that
nothing is shared between tools and no name carries a number. The types of a document accept at least what its schema
accepts; where they would accept more, ``Document.enforced`` holds the schema to be judged at run time. Every mistake is
reported at its pointer, all at once; what a schema says wrongly of itself, and can be read honestly, is a finding.
"""

from __future__ import annotations

from typing import Final

from toolkit.codegen.package import naming
from toolkit.codegen.schema.accepts import accepts, settled
from toolkit.codegen.schema.conjunction import UNIONS, Parts
from toolkit.codegen.schema.disjoint import disjoint
from toolkit.codegen.schema.document import Document
from toolkit.codegen.schema.enforced import enforced_text, is_valid, mistake_in
from toolkit.codegen.schema.enums import flat_enum
from toolkit.codegen.schema.keywords import ASSERTIONS, ENFORCED, LIMITS
from toolkit.codegen.schema.kinds import kinds_of, takes_only_objects, unknown_type
from toolkit.codegen.schema.limits import typed_limits
from toolkit.codegen.schema.merge import Merged, merge
from toolkit.codegen.schema.pieces import further, items_of, required_names
from toolkit.codegen.schema.references import References, Schema, escaped
from toolkit.codegen.schema.report import Notes, TooManySteps
from toolkit.codegen.schema.tolerate import mended

MAX_BRANCHES: Final = 500
"""A union of more is left to the validator as a whole: no reader, type checker or compiler has any use for its type."""

STEPS_OF_A_CLASS: Final = 30
"""What writing a class costs the generator beneath, as so many steps of ours."""


def flatten(schema: Schema, name: str, base: str, *, is_input: bool = False) -> tuple[Document, list[str]]:
    """The document for ``schema`` with classes named ``name``, ``name + place``; and its mistakes, ``message @ pointer``.

    Arguments are always an object, so the root of an input becomes one class, however its schema is put together.
    """
    notes = Notes()
    schema = mended(schema, notes)
    walk = _Walk(schema, name, notes)
    root: Schema = {"type": "object"}
    try:
        root = walk.root_node(is_input=is_input)
    except RecursionError:
        notes.problem("its references lead from one to the next too often to be followed; write fewer of them", "")
    except TooManySteps:
        assert notes.problems
    document = Document(name, root, walk.objects, walk.aliases)
    document.findings = walk.notes.findings
    problems = walk.notes.problems
    if walk.notes.enforced and not problems:
        mistake = mistake_in(schema)
        if mistake is None:
            document.enforced = enforced_text(schema)
        else:
            word, pointer = walk.notes.enforced[0]
            problems = [
                (f"{word!r} is judged at run time, and the validator does not take this schema: {mistake}", pointer)
            ]
    return document, [f"{text} @ {base}{pointer}" for text, pointer in problems]


class _Walk:
    """The walk over one schema; ``problems`` gathers instead of raising, so that one run tells everything."""

    def __init__(self, root: Schema, name: str, notes: Notes) -> None:
        self.root = root
        self.name = name
        self.references = References(root)
        self.objects: dict[str, Schema] = {}
        self.aliases: dict[str, Schema] = {}
        self.notes = notes
        self.parts = Parts(self.references, self.notes)
        self.definitions: dict[str, Schema] = {}
        self.open: set[str] = set()
        self.building: set[str] = set()
        self.places: dict[str, str] = {}
        self.classes: dict[str, str] = {}
        self.kinds: dict[str, list[str]] = {}
        self.root_is_class = False

    # -- the root ----------------------------------------------------------------------------------------------------

    def root_node(self, *, is_input: bool) -> Schema:
        with self.parts.frame() as enter:
            parts = self.parts.of(self.root, "")
            merged = Merged({}, exact=False) if parts is None else merge(parts)
            if is_input or takes_only_objects(merged.schema):
                self.refuse_all_but_objects(merged.schema)
                self.root_is_class = True
                self.building.add(self.name)
                self.parts.check_keywords({**merged.schema, **self.root}, "")
                if not merged.exact:
                    self.notes.enforce("allOf" if "allOf" in self.root else "$ref", "")
                whole = self.parts.as_object(merged.schema, "")
                enter()
                return self.object_node(whole, "", self.name)
        return self.node(self.root, "", self.name)

    def refuse_all_but_objects(self, schema: Schema) -> None:
        kinds = kinds_of(schema)
        if kinds is not None and "object" not in kinds:
            self.notes.problem("the arguments of a tool are an object, and this schema takes none", "")

    # -- one node ----------------------------------------------------------------------------------------------------

    def node(self, schema: object, pointer: str, name: str, *, nested: bool = False) -> Schema:
        """``schema`` made flat; ``name`` is what an object found here will be called."""
        if schema is True:
            return {}
        if schema is False:
            return self.notes.enforce("false", pointer)
        if not isinstance(schema, dict):
            return self.notes.problem("a schema must be an object, true or false", pointer)
        self.notes.step(pointer)
        self.parts.check_keywords(schema, pointer)
        flat = self.shaped(schema, pointer, name)
        if nested and _carries_limits(flat):
            flat = self.alias(flat, pointer, name)
        return self.with_default(flat, schema, pointer)

    def shaped(self, schema: Schema, pointer: str, name: str) -> Schema:
        if "$ref" in schema:
            return self.referring(schema, pointer, name)
        if "enum" in schema or "const" in schema:
            return flat_enum(schema, pointer, self.notes)
        if "allOf" in schema:
            return self.conjunction(schema, pointer, name)
        for word in UNIONS:
            if word in schema:
                return self.union(schema, word, pointer, name)
        if "type" in schema:
            return self.typed(schema, pointer, name)
        for word in schema:
            if word in ASSERTIONS - ENFORCED:
                self.notes.enforce(word, pointer)
        return {}

    def with_default(self, flat: Schema, schema: Schema, pointer: str) -> Schema:
        described = (
            {**flat, "description": schema["description"]} if isinstance(schema.get("description"), str) else flat
        )
        if "default" not in schema:
            return described
        default, place = schema["default"], f"{pointer}/default"
        known = len(self.notes.problems) or accepts(flat, default, self.lookup)
        if not known or self.notes.enforced and not is_valid(schema, self.root, default):
            self.notes.finding("'default' is not accepted by the schema it stands in, so nothing is assumed", place)
            return described
        if isinstance(default, dict | list) and self.building & self.reached(flat):
            self.notes.finding(
                "a 'default' that is made of the object it stands in has no end, so nothing is assumed", place
            )
            return described
        return described if self.notes.problems else {**described, "default": settled(flat, default, self.lookup)}

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
        self.notes.step("")
        if name == self.name:
            return {"type": "object"}
        return self.objects.get(name) or self.aliases.get(name)

    # -- references and conjunctions ---------------------------------------------------------------------------------

    def referring(self, schema: Schema, pointer: str, name: str) -> Schema:
        beside = any(word in ASSERTIONS and word != "$ref" for word in schema)
        if beside and not self.references.ignores_siblings:
            place = self.references.place(schema["$ref"])
            if place != "" and place not in self.open:
                return self.conjunction(schema, pointer, name)
            # What is still being read cannot be merged with anything; its class is there already.
            self.notes.enforce("$ref", pointer)
        return self.reference(schema, pointer)

    def reference(self, schema: Schema, pointer: str) -> Schema:
        place, target = self.parts.target(schema["$ref"], f"{pointer}/$ref")
        if place is None:
            return {}
        if place in self.open or place == "":
            if place == "" and self.root_is_class:
                return {"$ref": f"#/$defs/{self.name}"}
            return self.recursion(place, pointer)
        if place not in self.definitions:
            self.open.add(place)
            self.definitions[place] = self.node(target, place, self.name + naming.camel(place.rpartition("/")[2]))
            self.open.discard(place)
        found = _bare(self.definitions[place])
        self.notes.step(pointer, _size(found))
        return found

    def recursion(self, place: str, pointer: str) -> Schema:
        """A reference to what is being read: a class has its name already, anything else is left to the validator."""
        others = [kind for kind in self.kinds.get(place, ()) if kind != "object"]
        if place not in self.classes or others not in ([], ["null"]):
            return self.notes.enforce("$ref", pointer)
        itself = {"$ref": f"#/$defs/{self.classes[place]}"}
        return {"anyOf": [itself, {"type": "null"}]} if others else itself

    def conjunction(self, schema: Schema, pointer: str, name: str) -> Schema:
        """``allOf``, or a reference with words beside it: one type for all that must hold at once."""
        alone = self.parts.sole(schema)
        if alone is not None:
            return _bare(self.node(alone, pointer, name))
        with self.parts.frame() as enter:
            parts = self.parts.of(schema, pointer)
            if parts is None:
                return self.notes.enforce("$ref", pointer)
            merged = merge(parts)
            if not merged.exact:
                self.notes.enforce("allOf", pointer)
            self.parts.check_keywords(merged.schema, pointer)
            enter()
            return self.shaped(merged.schema, pointer, name)

    # -- shapes ------------------------------------------------------------------------------------------------------

    def union(self, schema: Schema, word: str, pointer: str, name: str) -> Schema:
        branches = schema[word]
        if not isinstance(branches, list) or not branches:
            return self.notes.problem(f"{word!r} must be a list with at least one schema", f"{pointer}/{word}")
        beside = {key: value for key, value in schema.items() if key in ASSERTIONS and key != word}
        if beside:
            return self.refined(schema, beside, word, pointer, name)
        return self.branches(branches, word, pointer, name)

    def refined(self, schema: Schema, beside: Schema, word: str, pointer: str, name: str) -> Schema:
        """A union with words beside it, which hold for each of its branches."""
        branches = schema[word]
        if takes_only_objects(beside):
            with self.parts.frame() as enter:
                whole = self.parts.as_object(schema, pointer)
                enter()
                return self.typed(whole, pointer, name)
        if beside.keys() == {"type"} and all(isinstance(b, dict) and b and "type" not in b for b in branches):
            return self.branches([{"allOf": [beside, branch]} for branch in branches], word, pointer, name)
        self.notes.enforce(word, pointer)
        return self.shaped({key: value for key, value in schema.items() if key != word}, pointer, name)

    def branches(self, branches: list[object], word: str, pointer: str, name: str) -> Schema:
        if len(branches) > MAX_BRANCHES:
            return self.notes.enforce(word, pointer)
        named = sum(1 for branch in branches if not _is_null(branch)) == 1
        flat = [
            _bare(
                self.node(
                    branch, f"{pointer}/{word}/{i}", name if named else f"{name}{_branch_name(branch, i)}", nested=True
                )
            )
            for i, branch in enumerate(branches)
        ]
        if word == "oneOf" and not disjoint(flat, self.lookup):
            self.notes.enforce("oneOf", pointer)
        if {} in flat:
            return {}
        if _size({"anyOf": flat}) > 2 * MAX_BRANCHES:
            return self.notes.enforce(word, pointer)
        return flat[0] if len(flat) == 1 else {"anyOf": flat}

    def typed(self, schema: Schema, pointer: str, name: str) -> Schema:
        kinds = kinds_of(schema)
        if kinds is None or any(kind not in LIMITS for kind in kinds):
            return self.notes.problem(unknown_type(kinds or ()), f"{pointer}/type")
        if not kinds:
            self.notes.finding("no type is left that a value could have", pointer)
            return self.notes.enforce("type", pointer)
        kinds = [k for k in dict.fromkeys(kinds) if not (k == "integer" and "number" in kinds)]
        self.kinds[pointer] = kinds
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
            else {"type": kind, **typed_limits(kind, schema, pointer, self.notes)}
        )
        return self.alias(flat, pointer, name) if nested and _carries_limits(flat) else flat

    def array(self, schema: Schema, pointer: str, name: str) -> Schema:
        flat: Schema = {"type": "array", **typed_limits("array", schema, pointer, self.notes)}
        items = items_of(schema, pointer, self.notes)
        if items is not None:
            flat["items"] = _bare(self.node(items, f"{pointer}/items", naming.singular(name), nested=True))
        return flat

    # -- objects -----------------------------------------------------------------------------------------------------

    def named_object(self, schema: Schema, pointer: str, name: str) -> Schema:
        """A map stays in place; an object with properties, or a closed one, becomes a class of its own."""
        closed = further(schema) is False
        if not schema.get("properties") and not schema.get("required") and not closed:
            return self.object_node(schema, pointer, name)
        name = self.classes[pointer] = self.unused(name, pointer)
        self.objects[name] = {"type": "object"}
        self.building.add(name)
        self.objects[name] = self.object_node(schema, pointer, name)
        self.building.discard(name)
        return {"$ref": f"#/$defs/{name}"}

    def object_node(self, schema: Schema, pointer: str, name: str) -> Schema:
        flat: Schema = {"type": "object"}
        properties = schema.get("properties", {})
        if not isinstance(properties, dict):
            return self.notes.problem("'properties' must be an object", f"{pointer}/properties")
        required = required_names(schema, properties, pointer, self.notes)
        # A name that is required and not declared may hold anything; that it must be there is still true.
        properties = {**properties, **{key: True for key in required if key not in properties}}
        if properties:
            flat["properties"] = {
                key: self.node(value, f"{pointer}/properties/{escaped(key)}", name + naming.camel(key))
                for key, value in properties.items()
            }
        flat["required"] = required
        extra = further(schema)
        flat["additionalProperties"] = (
            extra
            if isinstance(extra, bool)
            else _bare(self.node(extra, f"{pointer}/additionalProperties", f"{name}Value", nested=True))
        )
        if isinstance(schema.get("description"), str):
            flat["description"] = schema["description"]
        return flat

    def alias(self, flat: Schema, pointer: str, name: str) -> Schema:
        name = self.unused(name, pointer)
        self.aliases[name] = flat
        return {"$ref": f"#/$defs/{name}"}

    def unused(self, name: str, pointer: str) -> str:
        """The name, with a digest of the place where another place of this tool has it already."""
        self.notes.step(pointer, STEPS_OF_A_CLASS)
        if name == self.name:
            # That is the class around this one: a model of a value that is an object or null, say.
            name = f"{name}Root"
        if self.places.setdefault(name, pointer) == pointer:
            return name
        return f"{name}X{naming.digest(pointer)}"


def _bare(flat: Schema) -> Schema:
    """A node without what describes another place."""
    return {word: value for word, value in flat.items() if word not in ("default", "description")}


def _size(flat: object) -> int:
    """How many nodes stand in a flat one; what has a name counts once, wherever it is named."""
    if not isinstance(flat, dict):
        return 0
    inner = [flat.get("items"), flat.get("additionalProperties"), *flat.get("anyOf", ())]
    return 1 + sum(map(_size, [*inner, *flat.get("properties", {}).values()]))


def _carries_limits(flat: Schema) -> bool:
    """Whether a node inside another one needs a name of its own: the generator beneath would make one up."""
    kind = flat.get("type")
    return kind not in (None, "object") and any(word in flat for word in LIMITS[kind] if word != "items")


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
