"""Flattens one schema: what is known of it so far, and the path of each node.

The path of one node: ``flatten_node`` -> ``shape`` (the table ``_SHAPES`` says by which keyword) -> one of the
``shape_...`` functions -> ``flatten_node`` for each schema inside -> a name for what needs one -> ``add_default``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from toolkit.codegen.package import python_names
from toolkit.codegen.schema.conjunction import Conjunction, Conjunctions
from toolkit.codegen.schema.defaults import accepts, settle_default
from toolkit.codegen.schema.enforced import is_valid
from toolkit.codegen.schema.enums import flat_enum
from toolkit.codegen.schema.keywords import ENFORCED, has_effect, is_stray_property
from toolkit.codegen.schema.naming.name_hint import NameHint
from toolkit.codegen.schema.objects import takes_only_objects
from toolkit.codegen.schema.report import MAX_STEPS, Loss, Notes
from toolkit.codegen.schema.shapes.conjunctions import shape_conjunction
from toolkit.codegen.schema.shapes.flat_node import OF_ITS_PLACE, carries_limits
from toolkit.codegen.schema.shapes.objects import build_object
from toolkit.codegen.schema.shapes.recursion import close
from toolkit.codegen.schema.shapes.references import shape_reference
from toolkit.codegen.schema.shapes.types import shape_types
from toolkit.codegen.schema.shapes.unions import shape_union
from toolkit.jsonschema.keywords import APPLIES_TO, ASSERTIONS, Schema
from toolkit.jsonschema.types import types_of
from toolkit.schema.keywords import References

STEPS_OF_A_CLASS: Final = 30
"""What writing a class costs datamodel-code-generator, as a number of our own steps."""


class Flattener:
    """Flattens one schema; mistakes are gathered instead of raised, so that one run reports all of them."""

    def __init__(self, root: Schema, name: str, notes: Notes) -> None:
        self.root = root
        self.name = name
        self.notes = notes
        self.references = References(root)
        self.conjunctions = Conjunctions(self.references, notes)
        # What was made: classes, other named types, and what references lead to, by place.
        self.objects: dict[str, Schema] = {}
        self.aliases: dict[str, Schema] = {}
        self.definitions: dict[str, Schema] = {}
        self.hints: dict[str, NameHint] = {}
        self.merged: dict[str, Schema] = {}
        # How many branches judge one value, so far, and in each conjunction and definition that was made.
        self.judged = 0
        self.judged_in: dict[str, int] = {}
        # Places that are not classes and were referred to while they were open: the alias of each.
        self.recursive: dict[str, str] = {}
        # What is being made: places that may be referred to, with their names; conjunctions, with their places; classes.
        self.open: dict[str, str] = {}
        self.open_conjunctions: dict[str, str] = {}
        self.building: set[str] = set()
        # What is known of a place: its name, its class and its types.
        self.places: dict[str, str] = {}
        self.classes: dict[str, str] = {}
        self.types: dict[str, list[str]] = {}
        self.root_is_class = False
        self.root_takes_only_objects = False

    # -- the root ----------------------------------------------------------------------------------------------------

    def flatten_root(self, *, is_input: bool) -> Schema:
        whole = self.conjunctions.merge(self.root, "") or Conjunction({}, False)
        if not is_input and not takes_only_objects(whole.schema):
            self.open[""] = self.name
            return close(self, "", self.flatten_node(self.root, "", self.name))
        types = types_of(whole.schema)
        if types is not None and "object" not in types:
            self.notes.problem("the arguments of a tool are an object, but this schema accepts no object", "")
        self.root_is_class = True
        self.root_takes_only_objects = types == ["object"]
        self.building.add(self.name)
        self.conjunctions.check_keywords({**whole.schema, **self.root}, "")
        if not whole.exact:
            self.notes.enforce("allOf" if "allOf" in self.root else "$ref", "")
        return build_object(self, self.conjunctions.as_object(whole, "").schema, "", self.name)

    # -- one node ----------------------------------------------------------------------------------------------------

    def flatten_node(self, schema: object, pointer: str, name: str, *, nested: bool = False) -> Schema:
        """``schema`` made flat; ``name`` is what an object found here will be called."""
        if schema is True:
            return {}
        if schema is False:
            self.notes.enforce("false", pointer)
            return self.notes.lose(Loss.NEVER_VALID, pointer)
        if not isinstance(schema, dict):
            return self.notes.problem("a schema must be an object, true or false", pointer)
        self.notes.step(pointer)
        self.conjunctions.check_keywords(schema, pointer)
        flat = self.shape(schema, pointer, name)
        if nested and carries_limits(flat):
            flat = self.add_alias(flat, pointer, name)
        elif nested:
            flat = self.name_union(flat, pointer, name)
        return self.add_default(flat, schema, pointer)

    def shape(self, schema: Schema, pointer: str, name: str) -> Schema:
        """The flat form of a schema, without its default: the first of these keywords decides."""
        for word, shape in _SHAPES.items():
            if word in schema:
                return shape(self, schema, pointer, name)
        saying = [word for word in schema if word in ASSERTIONS and (word not in ENFORCED or has_effect(word, schema))]
        for word in saying:
            if word not in ENFORCED:
                self.notes.enforce(word, pointer)
        if not saying:
            stray = next((word for word, value in schema.items() if is_stray_property(word, value)), None)
            return {} if stray is None else self.notes.lose(Loss.NOT_A_KEYWORD, pointer, repr(stray))
        typed = any(word in APPLIES_TO for word in saying)
        return self.notes.lose(Loss.NO_TYPE if typed else Loss.ONLY_CHECKED, pointer, repr(saying[0]))

    def add_default(self, flat: Schema, schema: Schema, pointer: str) -> Schema:
        described = (
            {**flat, "description": schema["description"]} if isinstance(schema.get("description"), str) else flat
        )
        if "default" not in schema:
            return described
        default, place = schema["default"], f"{pointer}/default"
        known = len(self.notes.problems) or accepts(flat, default, self.lookup)
        if not known or self.notes.enforced and not is_valid(schema, self.root, default):
            self.notes.finding("'default' is not valid for its own schema and is ignored", place)
            return described
        if isinstance(default, dict | list) and self.building & self.needed_classes(flat):
            self.notes.finding("a 'default' that contains its own object never ends and is ignored", place)
            return described
        return (
            described if self.notes.problems else {**described, "default": settle_default(flat, default, self.lookup)}
        )

    def needed_classes(self, flat: Schema) -> set[str]:
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

    def judge_again(self, key: str, pointer: str) -> None:
        """Counts the branches of what was made before: its type is made once, but the validator judges it each time."""
        self.judged += self.judged_in[key]
        if self.judged > MAX_STEPS:
            self.notes.step(pointer, self.judged)

    # -- names -------------------------------------------------------------------------------------------------------

    def add_alias(self, flat: Schema, pointer: str, name: str) -> Schema:
        name = self.claim_name(name, pointer)
        self.aliases[name] = flat
        return {"$ref": f"#/$defs/{name}"}

    def name_union(self, flat: Schema, pointer: str, name: str) -> Schema:
        """A union of classes inside another type gets a name, by which its tag can be shown; any other node stays."""
        branches = [branch for branch in flat.get("anyOf", ()) if branch != {"type": "null"}]
        targets = [branch.get("$ref", "").rpartition("/")[2] for branch in branches]
        if len(branches) < 2 or not all(target in self.objects for target in targets):
            return flat
        name = name if self.places.get(name, pointer) == pointer else f"{name}Union"
        alias = self.add_alias({"anyOf": branches}, pointer, name)
        about = {word: flat[word] for word in OF_ITS_PLACE if word in flat}
        return about | (alias if len(branches) == len(flat["anyOf"]) else {"anyOf": [alias, {"type": "null"}]})

    def claim_name(self, name: str, pointer: str) -> str:
        """The name, with a digest of the place if another place of this tool has it already."""
        self.notes.step(pointer, STEPS_OF_A_CLASS)
        if name == self.name:
            # That is the class around this one, such as the model of a value that is an object or null.
            name = f"{name}Root"
        if self.places.setdefault(name, pointer) == pointer:
            return name
        return f"{name}X{python_names.digest(pointer)}"


def _shape_values(flattener: Flattener, schema: Schema, pointer: str, name: str) -> Schema:
    return flat_enum(schema, pointer, flattener.notes)


_SHAPES: Final[dict[str, Callable[[Flattener, Schema, str, str], Schema]]] = {
    "$ref": shape_reference,
    "enum": _shape_values,
    "const": _shape_values,
    "allOf": shape_conjunction,
    "anyOf": shape_union,
    "oneOf": shape_union,
    "type": shape_types,
}
