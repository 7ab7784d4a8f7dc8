"""One spec's schema -> its own document: flat, with a stable name for every object, ready for datamodel-code-generator.

Every object with properties moves to ``$defs``, first under a provisional name made of the tool and the place. When all of
them are known, equal types become one and each gets its name (``naming``). Nothing is shared between tools. The types of a
document accept at least what its schema accepts; where they would accept more, ``Document.enforced`` holds the schema to be
judged at run time. Every mistake is reported at its pointer, all at once; an inconsistency that leaves the meaning clear is
a finding.

How one node is flattened is in ``shapes``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from toolkit.codegen.package import python_names
from toolkit.codegen.schema.conjunction import (
    DECLARED_BY_SOME,
    Conjunction,
    Conjunctions,
    report_open_patterns,
    required_names,
    schema_of_extra_properties,
    schema_of_items,
    sole_part,
    takes_only_objects,
)
from toolkit.codegen.schema.document import (
    ENFORCED,
    LIMITS,
    MAX_STEPS,
    RICH,
    Document,
    Loss,
    NameHint,
    Notes,
    TooManySteps,
    enforced_text,
    has_effect,
    is_stray_property,
    is_valid,
    mistake_in,
    typed_limits,
    usual_mistakes,
    with_rich_types,
)
from toolkit.codegen.schema.naming import name_types, share_equal_types, sole_name
from toolkit.codegen.schema.simplify import accepts, exclude_each_other, flat_enum, mend, settle_default, simplify
from toolkit.schema.keywords import (
    APPLIES_TO,
    ASSERTIONS,
    TYPES,
    UNIONS,
    References,
    Schema,
    escape_key,
    find_at,
    split_pointer,
    types_of,
    unknown_type,
)

# ----------------------------------------------------------------------------------------------------------------------
# The parts of a flat node that is being made.

OF_ITS_PLACE: Final = ("default", "description")
"""The keywords of a flat node that describe the place where it is used."""


def bare(flat: Schema) -> Schema:
    """A node without the keywords that describe another place."""
    return {word: value for word, value in flat.items() if word not in OF_ITS_PLACE}


def size(flat: object) -> int:
    """How many nodes are in a flat one; a named node counts once, wherever it is named."""
    if not isinstance(flat, dict):
        return 0
    inner = [flat.get("items"), flat.get("additionalProperties"), *flat.get("anyOf", ())]
    return 1 + sum(map(size, [*inner, *flat.get("properties", {}).values()]))


def carries_limits(flat: Schema) -> bool:
    """Whether a node inside another one needs a name of its own: else datamodel-code-generator makes one up."""
    kind = flat.get("type")
    return kind not in (None, "object") and any(word in flat for word in LIMITS[kind] if word != "items")


# ----------------------------------------------------------------------------------------------------------------------
# References to what is being made: they end there, with a name.


def refer_back(flattener: Flattener, place: str, pointer: str) -> Schema:
    """A reference to what is being made: a class has its name already, anything else becomes an alias."""
    if place == "" and flattener.root_is_class:
        if not flattener.root_takes_only_objects:
            # Arguments are an object, but what refers to their schema may be anything else as well.
            flattener.notes.enforce("$ref", pointer)
            return flattener.notes.lose(Loss.NO_TYPE, pointer, "the root of this schema")
        return {"$ref": f"#/$defs/{flattener.name}"}
    others = [name for name in flattener.types.get(place, ()) if name != "object"]
    if place in flattener.classes and others in ([], ["null"]):
        itself = {"$ref": f"#/$defs/{flattener.classes[place]}"}
        return {"anyOf": [itself, {"type": "null"}]} if others else itself
    if place not in flattener.recursive:
        flattener.recursive[place] = flattener.claim_name(flattener.open[place], place)
    return {"$ref": f"#/$defs/{flattener.recursive[place]}"}


def close(flattener: Flattener, place: str, flat: Schema) -> Schema:
    """Ends what ``open`` began. What was referred to meanwhile gets its name."""
    del flattener.open[place]
    if place not in flattener.recursive:
        return flat
    name = flattener.recursive[place]
    flattener.aliases[name] = bare(flat)
    if _holds_itself(flattener, flat, name):
        flattener.notes.enforce("$ref", place)
        flattener.aliases[name] = flattener.notes.lose(Loss.CIRCULAR, place)
    return {**{word: flat[word] for word in OF_ITS_PLACE if word in flat}, "$ref": f"#/$defs/{name}"}


def _holds_itself(flattener: Flattener, flat: Schema, name: str) -> bool:
    """Whether a type is one of its own branches, with no array, map or class in between."""
    pending, seen = [flat], {""}
    while pending:
        node = pending.pop()
        pending += node.get("anyOf", ())
        target = node.get("$ref", "").rpartition("/")[2]
        if target == name:
            return True
        if target in flattener.aliases and target not in seen:
            seen.add(target)
            pending.append(flattener.aliases[target])
    return False


# ----------------------------------------------------------------------------------------------------------------------
# ``allOf``, and ``$ref`` with keywords next to it: one type for all that must hold at once.

MAX_NESTED_CONJUNCTIONS: Final = 30


def shape_conjunction(flattener: Flattener, schema: Schema, pointer: str, name: str) -> Schema:
    """``allOf``, or a reference with keywords next to it: one type for all that must hold at once."""
    alone = sole_part(schema)
    if alone is not None:
        return bare(flattener.flatten_node(alone, pointer, name))
    whole = flattener.conjunctions.merge(schema, pointer)
    if whole is None or len(flattener.open_conjunctions) > MAX_NESTED_CONJUNCTIONS:
        flattener.notes.enforce("allOf", pointer)
        return flattener.notes.lose(Loss.CIRCULAR, pointer)
    if not whole.exact:
        flattener.notes.enforce("allOf", pointer)
    flattener.conjunctions.check_keywords(whole.schema, pointer)
    key = whole.key()
    if key in flattener.open_conjunctions:
        # The same schemas, inside themselves: the name of what they are going to be ends it.
        return refer_back(flattener, flattener.open_conjunctions[key], pointer)
    if key not in flattener.merged:
        opens_place = pointer not in flattener.open
        flattener.open.setdefault(pointer, name)
        flattener.open_conjunctions[key] = pointer
        before = flattener.judged
        flat = flattener.shape(whole.schema, pointer, name)
        del flattener.open_conjunctions[key]
        flattener.judged_in[key] = flattener.judged - before
        flattener.merged[key] = close(flattener, pointer, flat) if opens_place else flat
    else:
        flattener.judge_again(key, pointer)
    return flattener.merged[key]


# ----------------------------------------------------------------------------------------------------------------------
# Objects: classes and maps, their properties and values.


def shape_object(flattener: Flattener, schema: Schema, pointer: str, name: str) -> Schema:
    """A map stays in place; an object with properties, or a closed one, becomes a class of its own."""
    closed = schema_of_extra_properties(schema) is False
    if not schema.get("properties") and not schema.get("required") and not closed:
        return build_object(flattener, schema, pointer, name)
    name = flattener.classes[pointer] = flattener.claim_name(name, pointer)
    if isinstance(schema.get("title"), str):
        flattener.hints[name] = NameHint(titles=(schema["title"],))
    flattener.objects[name] = {"type": "object"}
    flattener.building.add(name)
    flattener.objects[name] = build_object(flattener, schema, pointer, name)
    flattener.building.discard(name)
    return {"$ref": f"#/$defs/{name}"}


def build_object(flattener: Flattener, schema: Schema, pointer: str, name: str) -> Schema:
    flat: Schema = {"type": "object"}
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        return flattener.notes.problem("'properties' must be an object", f"{pointer}/properties")
    required = required_names(schema, properties, pointer, flattener.notes)
    # A name that is required and not declared may hold anything, but is still required.
    properties = {**properties, **{key: True for key in required if key not in properties}}
    if properties:
        flat["properties"] = {
            key: _flatten_property(flattener, value, f"{pointer}/properties/{escape_key(key)}", name, key)
            for key, value in properties.items()
        }
    flat["required"] = required
    report_open_patterns(schema, pointer, flattener.notes)
    extra = schema_of_extra_properties(schema)
    flat["additionalProperties"] = (
        extra
        if isinstance(extra, bool)
        else flatten_inner(flattener, extra, f"{pointer}/additionalProperties", f"{name}Value")
    )
    if isinstance(schema.get("description"), str):
        flat["description"] = schema["description"]
    return flat


def flatten_inner(flattener: Flattener, schema: object, pointer: str, name: str) -> Schema:
    """The schema of an item of an array, or of a value of a map."""
    judged = flattener.judged
    flat = flattener.flatten_node(schema, pointer, name, nested=True)
    flattener.judged = judged  # what is inside judges other values
    return bare(flat)


def _flatten_property(flattener: Flattener, schema: object, pointer: str, name: str, key: str) -> Schema:
    judged = flattener.judged
    flat = flattener.flatten_node(schema, pointer, name + python_names.camel(key))
    flattener.judged = judged
    if isinstance(schema, dict) and DECLARED_BY_SOME in schema:
        flattener.notes.lose(Loss.OTHER_BRANCHES, schema[DECLARED_BY_SOME], repr(key))
        flat[DECLARED_BY_SOME] = True
    return flat


# ----------------------------------------------------------------------------------------------------------------------
# ``$ref``: what it leads to is made once.


def shape_reference(flattener: Flattener, schema: Schema, pointer: str, name: str) -> Schema:
    has_siblings = any(word in ASSERTIONS and word != "$ref" for word in schema)
    if has_siblings and not flattener.references.ignores_siblings:
        return shape_conjunction(flattener, schema, pointer, name)
    target = flattener.conjunctions.find(schema["$ref"], f"{pointer}/$ref")
    if target is None:
        return flattener.notes.lose(Loss.UNKNOWN_REFERENCE, pointer)
    place = target.pointer
    if place in flattener.open or place == "":
        return refer_back(flattener, place, pointer)
    if place not in flattener.definitions:
        before = flattener.judged
        own_name = flattener.open[place] = flattener.name + python_names.camel(place.rpartition("/")[2])
        flat = close(flattener, place, flattener.flatten_node(target.schema, place, own_name))
        flattener.definitions[place] = flattener.name_union(flat, place, own_name)
        _note_definition(flattener, place)
        flattener.judged_in[place] = flattener.judged - before
    else:
        flattener.judge_again(place, pointer)
    found = bare(flattener.definitions[place])
    flattener.notes.step(pointer, size(found))
    return found


def _note_definition(flattener: Flattener, place: str) -> None:
    """Notes what the author called the type that a reference leads to, if that is one type."""
    name = sole_name(flattener.definitions[place])
    *_, keyword, key = ["", *split_pointer(place)]
    if name is not None and keyword in ("$defs", "definitions", "schemas"):
        flattener.hints[name] = flattener.hints.get(name, NameHint()) | NameHint(definitions=(key,))


# ----------------------------------------------------------------------------------------------------------------------
# ``type``: one type, or a union of several.

FORMATTED: Final = ("string", "integer", "number")
"""The types whose ``format`` is kept, for docstrings and for rich types."""


def shape_types(flattener: Flattener, schema: Schema, pointer: str, name: str) -> Schema:
    types = types_of(schema)
    if types is None or any(one not in TYPES for one in types):
        return flattener.notes.problem(unknown_type(types or ()), f"{pointer}/type")
    if not types:
        flattener.notes.finding("no value is valid: no type is left", pointer)
        flattener.notes.enforce("type", pointer)
        return flattener.notes.lose(Loss.NEVER_VALID, pointer, is_reported=True)
    types = [one for one in dict.fromkeys(types) if not (one == "integer" and "number" in types)]
    flattener.types[pointer] = types
    several = sum(one != "null" for one in types) > 1
    flat = [
        _shape_type(
            flattener, one, schema, pointer, name + python_names.camel(one) if several else name, nested=len(types) > 1
        )
        for one in types
    ]
    return flat[0] if len(flat) == 1 else {"anyOf": flat}


def _shape_type(flattener: Flattener, one: str, schema: Schema, pointer: str, name: str, *, nested: bool) -> Schema:
    if one == "object":
        return shape_object(flattener, schema, pointer, name)
    flat: Schema = {"type": one, **typed_limits(one, schema, pointer, flattener.notes)}
    if one in FORMATTED and isinstance(schema.get("format"), str):
        flat["format"] = schema["format"]
    items = schema_of_items(schema, pointer, flattener.notes) if one == "array" else None
    if items is not None:
        flat["items"] = flatten_inner(flattener, items, f"{pointer}/items", f"{name}Item")
    return flattener.add_alias(flat, pointer, name) if nested and carries_limits(flat) else flat


# ----------------------------------------------------------------------------------------------------------------------
# ``anyOf`` and ``oneOf``, with what is next to them.

MAX_BRANCHES: Final = 500
"""A union of more branches is left to the validator as a whole: its type would be of no use."""


def shape_union(flattener: Flattener, schema: Schema, pointer: str, name: str) -> Schema:
    word = next(word for word in UNIONS if word in schema)
    branches = schema[word]
    if not isinstance(branches, list) or not branches:
        return flattener.notes.problem(f"{word!r} must be a list with at least one schema", f"{pointer}/{word}")
    siblings = {key: value for key, value in schema.items() if key in ASSERTIONS and key != word}
    if not siblings:
        return _shape_branches(flattener, branches, word, pointer, name)
    # The keywords next to a union hold for each of its branches.
    if flattener.conjunctions.have_types(siblings, branches, f"{pointer}/{word}"):
        return _shape_branches(flattener, branches, word, pointer, name, siblings)
    if takes_only_objects(siblings):
        whole = flattener.conjunctions.as_object(Conjunction(schema, False), pointer)
        return shape_types(flattener, whole.schema, pointer, name)
    flattener.notes.enforce(word, pointer)
    return flattener.shape({key: value for key, value in schema.items() if key != word}, pointer, name)


def _shape_branches(
    flattener: Flattener, branches: list[object], word: str, pointer: str, name: str, siblings: Schema | None = None
) -> Schema:
    """A union; ``siblings`` hold for each of its branches."""
    if len(branches) > MAX_BRANCHES:
        flattener.notes.enforce(word, pointer)
        return flattener.notes.lose(Loss.TOO_MANY_BRANCHES, pointer)
    flat = []
    for i, branch in enumerate(branches):
        place = f"{pointer}/{word}/{i}"
        whole = branch if siblings is None else flattener.conjunctions.with_siblings(branch, siblings, place)
        if whole is not None:
            flattener.judged += 1
            flat.append(bare(flattener.flatten_node(whole, place, f"{name}Option{i + 1}", nested=True)))
    if word == "oneOf" and not exclude_each_other(flat, flattener.lookup):
        flattener.notes.enforce("oneOf", pointer)
    if not flat:
        flattener.notes.enforce(word, pointer)
        return flattener.notes.lose(Loss.NEVER_VALID, pointer)
    if {} in flat:
        return flattener.notes.lose(Loss.OPEN_BRANCH, pointer, repr(word)) if any(flat) else {}
    if size({"anyOf": flat}) > 2 * MAX_BRANCHES:
        flattener.notes.enforce(word, pointer)
        return flattener.notes.lose(Loss.TOO_MANY_BRANCHES, pointer)
    return flat[0] if len(flat) == 1 else {"anyOf": flat}


# ----------------------------------------------------------------------------------------------------------------------
# Flattens one schema: what is known of it so far, and the path of each node.
#
# The path of one node: ``flatten_node`` -> ``shape`` (the table ``_SHAPES`` says by which keyword) -> one of the
# ``shape_...`` functions -> ``flatten_node`` for each schema inside -> a name for what needs one -> ``add_default``.

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


def flatten(
    schema: Schema, name: str, *, is_input: bool = False, rich_formats: bool = False
) -> tuple[Document, list[tuple[str, str]]]:
    """The document for ``schema`` with classes named ``name``, ``name + word``; and its mistakes with their pointers.

    Arguments are always an object, so the root of an input becomes one class, however its schema is put together.
    With ``rich_formats``, texts of a known format have a type of their own; else a format is only a word.
    """
    notes = Notes()
    written = schema
    schema = mend(schema, notes)
    flattener = Flattener(schema, name, notes)
    root: Schema = {"type": "object"}
    try:
        root = flattener.flatten_root(is_input=is_input)
    except RecursionError:
        notes.problem("its references are nested too deeply to be followed; use fewer of them", "")
    except TooManySteps:
        assert notes.problems
    document = Document(name, root, flattener.objects, flattener.aliases, set(flattener.recursive.values()))
    document.hints = flattener.hints
    simplify(document, RICH if rich_formats else ())
    if not notes.problems:
        document = name_types(share_equal_types(document))
    document.findings = list(dict.fromkeys((text, _existing(pointer, written)) for text, pointer in notes.findings))
    document.losses = list(dict.fromkeys((loss, _existing(pointer, written)) for loss, pointer in notes.losses))
    if rich_formats:
        document = with_rich_types(document)
    problems = flattener.notes.problems
    if flattener.notes.enforced and not problems:
        mistake = mistake_in(schema)
        if mistake is None:
            document.enforced = enforced_text(schema)
        else:
            word, pointer = flattener.notes.enforced[0]
            general = f"{word!r} is checked at run time, but the validator refuses this schema: {mistake}"
            problems = usual_mistakes(schema) or [(general, pointer)]
    return document, problems


def _existing(pointer: str, schema: object) -> str:
    """The pointer, or as much of it as leads to something: merged schemas have places that are in no file."""
    keys = split_pointer(pointer)
    _, count = find_at(schema, keys)
    return "".join(f"/{escape_key(key)}" for key in keys[:count])
