"""One spec's schema -> its own document: flat, with a stable name for every object, ready for datamodel-code-generator.

Every object with properties moves to ``$defs``, first under a provisional name made of the tool and the place. When all of
them are known, equal types become one and each gets its name (``naming``). Nothing is shared between tools.

Promise: a document's types accept at least what its schema accepts. Where they would accept more, ``Document.enforced``
holds the schema for the validator at run time. All mistakes are reported at once, each at its pointer; an inconsistency
that leaves the meaning clear is a finding. Limit: a schema that expands to too many parts is refused (``MAX_STEPS``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

from toolkit.codegen.package import python_names
from toolkit.codegen.schema.document import (
    DECLARED_BY_SOME,
    MAX_STEPS,
    NULL,
    RICH,
    Document,
    Loss,
    NameHint,
    Notes,
    TooManySteps,
    name_of,
    reference_to,
    referred_name,
    sole_name,
    with_rich_types,
)
from toolkit.codegen.schema.keywords import (
    ENFORCED,
    LIMITS,
    enforced_text,
    flat_values,
    has_effect,
    is_stray_property,
    is_valid,
    mend,
    mistake_in,
    refusal,
    typed_limits,
    usual_mistakes,
)
from toolkit.codegen.schema.naming import name_types, share_equal_types
from toolkit.codegen.schema.simplify import accepts, exclude_each_other, settle_default, simplify
from toolkit.schema.accepts import same_json
from toolkit.schema.keywords import (
    APPLIES_TO,
    ASSERTIONS,
    TYPES,
    UNIONS,
    References,
    ReferenceTarget,
    Schema,
    escape_key,
    find_at,
    has_assertions,
    join_pointer,
    split_pointer,
    types_of,
    unknown_type,
)
from toolkit.schema.merge import NotMergeable, conjuncts, merge

MAX_NESTED_CONJUNCTIONS: Final = 30
MAX_BRANCHES: Final = 500
"""A union with more branches is left to the validator: its type would be of no use."""
STEPS_OF_A_CLASS: Final = 30
"""What writing a class costs datamodel-code-generator, in steps of ours."""

_OF_ITS_PLACE: Final = ("default", "description")
"""The keywords of a flat node that describe the place where it is used."""
_FORMATTED: Final = ("string", "integer", "number")
"""The types whose ``format`` is kept, for docstrings and for rich types."""


def flatten(
    schema: Schema, name: str, *, is_input: bool = False, rich_formats: bool = False
) -> tuple[Document, list[tuple[str, str]]]:
    """The document for ``schema`` with classes named ``name``, ``name + word``; and its mistakes with their pointers.

    Arguments are always an object, so the root of an input becomes one class, however its schema is put together.
    With ``rich_formats``, texts of a known format have a type of their own; without, a format is only a word.
    """
    notes, written = Notes(), schema
    schema = mend(schema, notes)
    document = _Flattener(schema, name, notes).make_document(is_input=is_input)
    simplify(document, RICH if rich_formats else ())
    if not notes.problems:
        document = name_types(share_equal_types(document))
    document.findings = list(dict.fromkeys((text, _existing(pointer, written)) for text, pointer in notes.findings))
    document.losses = list(dict.fromkeys((loss, _existing(pointer, written)) for loss, pointer in notes.losses))
    if rich_formats:
        document = with_rich_types(document)
    if not notes.enforced or notes.problems:
        return document, notes.problems
    mistake = mistake_in(schema)
    if mistake is None:
        document.enforced = enforced_text(schema)
        return document, []
    word, pointer = notes.enforced[0]
    general = f"{word!r} is checked at run time, but the validator refuses this schema: {mistake}"
    return document, usual_mistakes(schema) or [(general, pointer)]


def _existing(pointer: str, schema: object) -> str:
    """The pointer, or as much of it as leads to something: merged schemas have places that are in no file."""
    keys = split_pointer(pointer)
    _, count = find_at(schema, keys)
    return "".join(f"/{escape_key(key)}" for key in keys[:count])


class _Flattener:
    """Flattens one schema. Mistakes are collected in ``notes``, so that one run reports all of them.

    One node's path: ``_flatten`` -> ``_shape``, which goes by the keyword that decides -> ``_flatten`` for each schema
    inside -> a name for what needs one -> ``_with_default``.
    """

    def __init__(self, root: Schema, name: str, notes: Notes) -> None:
        self._root = root
        self._name = name
        self._notes = notes
        self._references = References(root)
        self._conjunctions = _Conjunctions(self._references, notes)
        # Finished: classes, other named types, what references lead to, by place, and conjunctions, by key.
        self._objects: dict[str, Schema] = {}
        self._aliases: dict[str, Schema] = {}
        self._hints: dict[str, NameHint] = {}
        self._definitions: dict[str, Schema] = {}
        self._merged: dict[str, Schema] = {}
        # In the making: places that may be referred to, with their names; conjunctions, with their places; classes.
        self._open: dict[str, str] = {}
        self._open_conjunctions: dict[str, str] = {}
        self._building: set[str] = set()
        # The aliases of places that are no classes and were referred to while they were open.
        self._recursive: dict[str, str] = {}
        # By place: the class and the types there; and by name, its place.
        self._classes: dict[str, str] = {}
        self._types: dict[str, list[str]] = {}
        self._places: dict[str, str] = {}
        # How many branches judge one value: so far, and in each finished conjunction and definition.
        self._judged = 0
        self._judged_in: dict[str, int] = {}
        self._root_is_class = False
        self._root_takes_only_objects = False

    # -- the root ----------------------------------------------------------------------------------------------------

    def make_document(self, *, is_input: bool) -> Document:
        root: Schema = {"type": "object"}
        try:
            root = self._flatten_root(is_input=is_input)
        except RecursionError:
            self._notes.problem("its references are nested too deeply to be followed; use fewer of them", "")
        except TooManySteps:
            assert self._notes.problems
        recursive = set(self._recursive.values())
        return Document(self._name, root, self._objects, self._aliases, recursive, hints=self._hints)

    def _flatten_root(self, *, is_input: bool) -> Schema:
        whole = self._conjunctions.merge(self._root, "") or _Conjunction({}, False)
        if not is_input and not _takes_only_objects(whole.schema):
            self._open[""] = self._name
            return self._close("", self._flatten(self._root, "", self._name))
        types = types_of(whole.schema)
        if types is not None and "object" not in types:
            self._notes.problem("the arguments of a tool are an object, but this schema accepts no object", "")
        self._root_is_class = True
        self._root_takes_only_objects = types == ["object"]
        self._building.add(self._name)
        self._conjunctions.check_keywords({**whole.schema, **self._root}, "")
        if not whole.exact:
            self._notes.enforce("allOf" if "allOf" in self._root else "$ref", "")
        return self._fill_object(self._conjunctions.as_object(whole, "").schema, "", self._name)

    # -- one node ----------------------------------------------------------------------------------------------------

    def _flatten(self, schema: object, pointer: str, name: str, *, nested: bool = False) -> Schema:
        """``schema`` made flat; ``name`` is what an object found here will be called."""
        if schema is True:
            return {}
        if schema is False:
            self._notes.enforce("false", pointer)
            return self._notes.lose(Loss.NEVER_VALID, pointer)
        if not isinstance(schema, dict):
            return self._notes.problem("a schema must be an object, true or false", pointer)
        self._notes.step(pointer)
        self._conjunctions.check_keywords(schema, pointer)
        flat = self._shape(schema, pointer, name)
        if nested and _carries_limits(flat):
            flat = self._add_alias(flat, pointer, name)
        elif nested:
            flat = self._name_union(flat, pointer, name)
        return self._with_default(flat, schema, pointer)

    def _flatten_inner(self, schema: object, pointer: str, name: str) -> Schema:
        """The schema of an item of an array, or of a value of a map."""
        judged = self._judged
        flat = self._flatten(schema, pointer, name, nested=True)
        self._judged = judged  # what is inside judges other values
        return _bare(flat)

    def _shape(self, schema: Schema, pointer: str, name: str) -> Schema:
        """The flat form of a schema, without its default. The first of these keywords decides."""
        if "$ref" in schema:
            return self._shape_reference(schema, pointer, name)
        if "enum" in schema or "const" in schema:
            return flat_values(schema, pointer, self._notes)
        if "allOf" in schema:
            return self._shape_conjunction(schema, pointer, name)
        if "anyOf" in schema or "oneOf" in schema:
            return self._shape_union(schema, pointer, name)
        if "type" in schema:
            return self._shape_types(schema, pointer, name)
        saying = [word for word in schema if word in ASSERTIONS and (word not in ENFORCED or has_effect(word, schema))]
        for word in saying:
            if word not in ENFORCED:
                self._notes.enforce(word, pointer)
        if not saying:
            stray = next((word for word, value in schema.items() if is_stray_property(word, value)), None)
            return {} if stray is None else self._notes.lose(Loss.NOT_A_KEYWORD, pointer, repr(stray))
        typed = any(word in APPLIES_TO for word in saying)
        return self._notes.lose(Loss.NO_TYPE if typed else Loss.ONLY_CHECKED, pointer, repr(saying[0]))

    # -- ``$ref``: its target is made once ---------------------------------------------------------------------------

    def _shape_reference(self, schema: Schema, pointer: str, name: str) -> Schema:
        has_siblings = any(word in ASSERTIONS and word != "$ref" for word in schema)
        if has_siblings and not self._references.ignores_siblings:
            return self._shape_conjunction(schema, pointer, name)
        target = self._conjunctions.find(schema["$ref"], f"{pointer}/$ref")
        if target is None:
            return self._notes.lose(Loss.UNKNOWN_REFERENCE, pointer)
        place = target.pointer
        if place in self._open or place == "":
            return self._refer_back(place, pointer)
        if place in self._definitions:
            self._judge_again(place, pointer)
        else:
            before = self._judged
            own_name = self._open[place] = self._name + python_names.camel(place.rpartition("/")[2])
            flat = self._close(place, self._flatten(target.schema, place, own_name))
            self._definitions[place] = self._name_union(flat, place, own_name)
            self._note_definition(place)
            self._judged_in[place] = self._judged - before
        found = _bare(self._definitions[place])
        self._notes.step(pointer, _size(found))
        return found

    def _note_definition(self, place: str) -> None:
        """Notes the author's name for the type that a reference leads to, if that is one type."""
        name = sole_name(self._definitions[place])
        *_, keyword, key = ["", *split_pointer(place)]
        if name is not None and keyword in ("$defs", "definitions", "schemas"):
            self._hints[name] = self._hints.get(name, NameHint()) | NameHint(definitions=(key,))

    # -- recursion: a reference to what is still in the making ends there, with a name -------------------------------

    def _refer_back(self, place: str, pointer: str) -> Schema:
        """A reference to an open place: a class has its name already, anything else becomes an alias."""
        if place == "" and self._root_is_class:
            if not self._root_takes_only_objects:
                # Arguments are an object, but what refers to their schema may be anything else.
                self._notes.enforce("$ref", pointer)
                return self._notes.lose(Loss.NO_TYPE, pointer, "the root of this schema")
            return reference_to(self._name)
        others = [name for name in self._types.get(place, ()) if name != "object"]
        if place in self._classes and others in ([], ["null"]):
            itself = reference_to(self._classes[place])
            return {"anyOf": [itself, NULL]} if others else itself
        if place not in self._recursive:
            self._recursive[place] = self._claim_name(self._open[place], place)
        return reference_to(self._recursive[place])

    def _close(self, place: str, flat: Schema) -> Schema:
        """Closes an open place. If it was referred to meanwhile, it is an alias."""
        del self._open[place]
        if place not in self._recursive:
            return flat
        name = self._recursive[place]
        self._aliases[name] = _bare(flat)
        if self._is_own_branch(name, flat):
            self._notes.enforce("$ref", place)
            self._aliases[name] = self._notes.lose(Loss.CIRCULAR, place)
        return {**{word: flat[word] for word in _OF_ITS_PLACE if word in flat}, **reference_to(name)}

    def _is_own_branch(self, name: str, flat: Schema) -> bool:
        """Whether a type is one of its own branches, with no array, map or class in between."""
        pending, seen = [flat], set[str]()
        while pending:
            node = pending.pop()
            pending += node.get("anyOf", ())
            target = referred_name(node)
            if target == name:
                return True
            if target in self._aliases and target not in seen:
                seen.add(target)
                pending.append(self._aliases[target])
        return False

    # -- ``allOf``, and ``$ref`` with keywords next to it: one type for all that must hold at once -------------------

    def _shape_conjunction(self, schema: Schema, pointer: str, name: str) -> Schema:
        alone = _sole_part(schema)
        if alone is not None:
            return _bare(self._flatten(alone, pointer, name))
        whole = self._conjunctions.merge(schema, pointer)
        if whole is None or len(self._open_conjunctions) > MAX_NESTED_CONJUNCTIONS:
            self._notes.enforce("allOf", pointer)
            return self._notes.lose(Loss.CIRCULAR, pointer)
        if not whole.exact:
            self._notes.enforce("allOf", pointer)
        self._conjunctions.check_keywords(whole.schema, pointer)
        key = whole.key()
        if key in self._open_conjunctions:
            # The same schemas, inside themselves: the name of what they are going to be ends it.
            return self._refer_back(self._open_conjunctions[key], pointer)
        if key in self._merged:
            self._judge_again(key, pointer)
            return self._merged[key]
        opens_place = pointer not in self._open
        self._open.setdefault(pointer, name)
        self._open_conjunctions[key] = pointer
        before = self._judged
        flat = self._shape(whole.schema, pointer, name)
        del self._open_conjunctions[key]
        self._judged_in[key] = self._judged - before
        self._merged[key] = self._close(pointer, flat) if opens_place else flat
        return self._merged[key]

    def _judge_again(self, key: str, pointer: str) -> None:
        """Counts the branches of a finished type: it is made once, but the validator judges it each time."""
        self._judged += self._judged_in[key]
        if self._judged > MAX_STEPS:
            self._notes.step(pointer, self._judged)

    # -- ``anyOf`` and ``oneOf``, with what is next to them ----------------------------------------------------------

    def _shape_union(self, schema: Schema, pointer: str, name: str) -> Schema:
        word = next(word for word in UNIONS if word in schema)
        branches = schema[word]
        if not isinstance(branches, list) or not branches:
            return self._notes.problem(f"{word!r} must be a list with at least one schema", f"{pointer}/{word}")
        siblings = {key: value for key, value in schema.items() if key in ASSERTIONS and key != word}
        # The keywords next to a union hold for each of its branches.
        if not siblings or self._conjunctions.have_types(siblings, branches, f"{pointer}/{word}"):
            return self._shape_branches(branches, word, pointer, name, siblings)
        if _takes_only_objects(siblings):
            whole = self._conjunctions.as_object(_Conjunction(schema, False), pointer)
            return self._shape_types(whole.schema, pointer, name)
        self._notes.enforce(word, pointer)
        return self._shape({key: value for key, value in schema.items() if key != word}, pointer, name)

    def _shape_branches(self, branches: list[object], word: str, pointer: str, name: str, siblings: Schema) -> Schema:
        if len(branches) > MAX_BRANCHES:
            self._notes.enforce(word, pointer)
            return self._notes.lose(Loss.TOO_MANY_BRANCHES, pointer)
        flat = []
        for i, branch in enumerate(branches):
            place = f"{pointer}/{word}/{i}"
            whole = self._conjunctions.with_siblings(branch, siblings, place) if siblings else branch
            if whole is not None:
                self._judged += 1
                flat.append(_bare(self._flatten(whole, place, f"{name}Option{i + 1}", nested=True)))
        if word == "oneOf" and not exclude_each_other(flat, self._lookup):
            self._notes.enforce("oneOf", pointer)
        if not flat:
            self._notes.enforce(word, pointer)
            return self._notes.lose(Loss.NEVER_VALID, pointer)
        if {} in flat:
            return self._notes.lose(Loss.OPEN_BRANCH, pointer, repr(word)) if any(flat) else {}
        if _size({"anyOf": flat}) > 2 * MAX_BRANCHES:
            self._notes.enforce(word, pointer)
            return self._notes.lose(Loss.TOO_MANY_BRANCHES, pointer)
        return flat[0] if len(flat) == 1 else {"anyOf": flat}

    # -- ``type``: one, or a union of several ------------------------------------------------------------------------

    def _shape_types(self, schema: Schema, pointer: str, name: str) -> Schema:
        types = types_of(schema)
        if types is None or any(one not in TYPES for one in types):
            return self._notes.problem(unknown_type(types or ()), f"{pointer}/type")
        if not types:
            self._notes.finding("no value is valid: no type is left", pointer)
            self._notes.enforce("type", pointer)
            return self._notes.lose(Loss.NEVER_VALID, pointer, is_reported=True)
        types = [one for one in dict.fromkeys(types) if not (one == "integer" and "number" in types)]
        self._types[pointer] = types
        if len(types) == 1:
            return self._shape_type(types[0], schema, pointer, name)
        several = sum(one != "null" for one in types) > 1
        flat = []
        for one in types:
            own_name = name + python_names.camel(one) if several else name
            node = self._shape_type(one, schema, pointer, own_name)
            flat.append(self._add_alias(node, pointer, own_name) if _carries_limits(node) else node)
        return {"anyOf": flat}

    def _shape_type(self, one: str, schema: Schema, pointer: str, name: str) -> Schema:
        if one == "object":
            return self._shape_object(schema, pointer, name)
        flat: Schema = {"type": one, **typed_limits(one, schema, pointer, self._notes)}
        if one in _FORMATTED and isinstance(schema.get("format"), str):
            flat["format"] = schema["format"]
        items = _schema_of_items(schema, pointer, self._notes) if one == "array" else None
        if items is not None:
            flat["items"] = self._flatten_inner(items, f"{pointer}/items", f"{name}Item")
        return flat

    # -- objects -----------------------------------------------------------------------------------------------------

    def _shape_object(self, schema: Schema, pointer: str, name: str) -> Schema:
        """A map stays in place; an object with properties, or a closed one, becomes a class of its own."""
        closed = _schema_of_extra_properties(schema) is False
        if not schema.get("properties") and not schema.get("required") and not closed:
            return self._fill_object(schema, pointer, name)
        name = self._classes[pointer] = self._claim_name(name, pointer)
        if isinstance(schema.get("title"), str):
            self._hints[name] = NameHint(titles=(schema["title"],))
        self._objects[name] = {"type": "object"}
        self._building.add(name)
        self._objects[name] = self._fill_object(schema, pointer, name)
        self._building.discard(name)
        return reference_to(name)

    def _fill_object(self, schema: Schema, pointer: str, name: str) -> Schema:
        flat: Schema = {"type": "object"}
        properties = schema.get("properties", {})
        if not isinstance(properties, dict):
            return self._notes.problem("'properties' must be an object", f"{pointer}/properties")
        required = _required_names(schema, properties, pointer, self._notes)
        # A name that is required and not declared may hold anything, but is still required.
        properties = {**properties, **{key: True for key in required if key not in properties}}
        if properties:
            flat["properties"] = {
                key: self._flatten_property(value, f"{pointer}/properties/{escape_key(key)}", name, key)
                for key, value in properties.items()
            }
        flat["required"] = required
        _report_open_patterns(schema, pointer, self._notes)
        extra = _schema_of_extra_properties(schema)
        if not isinstance(extra, bool):
            extra = self._flatten_inner(extra, f"{pointer}/additionalProperties", f"{name}Value")
        flat["additionalProperties"] = extra
        if isinstance(schema.get("description"), str):
            flat["description"] = schema["description"]
        return flat

    def _flatten_property(self, schema: object, pointer: str, name: str, key: str) -> Schema:
        judged = self._judged
        flat = self._flatten(schema, pointer, name + python_names.camel(key))
        self._judged = judged
        if isinstance(schema, dict) and DECLARED_BY_SOME in schema:
            self._notes.lose(Loss.OTHER_BRANCHES, schema[DECLARED_BY_SOME], repr(key))
            flat[DECLARED_BY_SOME] = True
        return flat

    # -- names -------------------------------------------------------------------------------------------------------

    def _add_alias(self, flat: Schema, pointer: str, name: str) -> Schema:
        name = self._claim_name(name, pointer)
        self._aliases[name] = flat
        return reference_to(name)

    def _name_union(self, flat: Schema, pointer: str, name: str) -> Schema:
        """A union of classes inside another type gets a name, by which its tag can be shown; any other node stays."""
        branches = [branch for branch in flat.get("anyOf", ()) if branch != NULL]
        if len(branches) < 2 or not all(referred_name(branch) in self._objects for branch in branches):
            return flat
        name = name if self._places.get(name, pointer) == pointer else f"{name}Union"
        alias = self._add_alias({"anyOf": branches}, pointer, name)
        about = {word: flat[word] for word in _OF_ITS_PLACE if word in flat}
        return about | (alias if len(branches) == len(flat["anyOf"]) else {"anyOf": [alias, NULL]})

    def _claim_name(self, name: str, pointer: str) -> str:
        """The name, with a digest of the place if another place of this tool has it already."""
        self._notes.step(pointer, STEPS_OF_A_CLASS)
        if name == self._name:
            # That is the class around this one, such as the model of a value that is an object or null.
            name = f"{name}Root"
        if self._places.setdefault(name, pointer) == pointer:
            return name
        return f"{name}X{python_names.digest(pointer)}"

    # -- defaults ----------------------------------------------------------------------------------------------------

    def _with_default(self, flat: Schema, schema: Schema, pointer: str) -> Schema:
        if isinstance(schema.get("description"), str):
            flat = {**flat, "description": schema["description"]}
        if "default" not in schema:
            return flat
        default, place = schema["default"], f"{pointer}/default"
        known = len(self._notes.problems) or accepts(flat, default, self._lookup)
        if not known or self._notes.enforced and not is_valid(schema, self._root, default):
            self._notes.finding("'default' is not valid for its own schema and is ignored", place)
            return flat
        if isinstance(default, dict | list) and self._building & self._needed_classes(flat):
            self._notes.finding("a 'default' that contains its own object never ends and is ignored", place)
            return flat
        if self._notes.problems:
            return flat
        return {**flat, "default": settle_default(flat, default, self._lookup)}

    def _needed_classes(self, flat: Schema) -> set[str]:
        """The names of all objects that a node's type needs."""
        found: set[str] = set()
        pending: list[object] = [flat]
        while pending:
            node = pending.pop()
            if not isinstance(node, dict):
                continue
            name = referred_name(node)
            if name is not None and name not in found:
                found.add(name)
                pending.append(self._lookup(node["$ref"]))
            pending += [node.get("items"), node.get("additionalProperties"), *node.get("anyOf", ())]
            pending += node.get("properties", {}).values()
        return found

    def _lookup(self, ref: str) -> Schema | None:
        """The flat node that a reference leads to; None while it is still in the making."""
        name = name_of(ref)
        self._notes.step("")
        if name == self._name:
            return {"type": "object"}
        return self._objects.get(name) or self._aliases.get(name)


def _bare(flat: Schema) -> Schema:
    """A node without the keywords that describe another place."""
    return {word: value for word, value in flat.items() if word not in _OF_ITS_PLACE}


def _size(flat: object) -> int:
    """How many nodes are in a flat one; a named node counts once, wherever it is named."""
    if not isinstance(flat, dict):
        return 0
    inner = [flat.get("items"), flat.get("additionalProperties"), *flat.get("anyOf", ())]
    return 1 + sum(map(_size, [*inner, *flat.get("properties", {}).values()]))


def _carries_limits(flat: Schema) -> bool:
    """Whether a node inside another one needs a name of its own: else datamodel-code-generator makes one up."""
    kind = flat.get("type")
    return kind not in (None, "object") and any(word in flat for word in LIMITS[kind] if word != "items")


# ----------------------------------------------------------------------------------------------------------------------
# Schemas that must hold at once, as one schema: references and ``allOf`` merged, unions of objects made one object.

MAX_DISTRIBUTED: Final = 64
"""Keywords next to a union of more branches are not merged into each of them."""


class _Conjunction(NamedTuple):
    """One schema made of several."""

    schema: Schema
    exact: bool
    """Whether it accepts nothing that one of them refuses."""

    def key(self) -> str:
        """The same text for the same schema, whatever it was made of."""
        return json.dumps(self.schema, sort_keys=True)


class _Conjunctions:
    """Makes the conjunctions of one document."""

    def __init__(self, references: References, notes: Notes) -> None:
        self._references = references
        self._notes = notes

    def merge(self, schema: object, pointer: str) -> _Conjunction | None:
        """A schema with its references and ``allOf`` merged in; None where they lead in a circle or cannot be typed."""
        parts = self._parts(schema, pointer)
        if parts is None or any(part is False for part in parts):
            return None
        merged = merge(parts)
        # What one part calls its own properties or items is another matter in the merged schema.
        is_typed = len(parts) == 1 or ENFORCED.isdisjoint(merged.schema)
        return _Conjunction(merged.schema, merged.exact and is_typed)

    def with_siblings(self, branch: object, siblings: Schema, pointer: str) -> object | None:
        """A branch of a union with the keywords next to it: the branch itself where they add nothing, None for no value."""
        alone = self._parts(branch, pointer)
        if alone is not None:
            both = merge([siblings, *alone])
            if both.is_empty:
                return None
            if both.exact and same_json(both.schema, merge(alone).schema):
                return branch
        return {"allOf": [siblings, branch]}

    def _parts(self, schema: object, pointer: str) -> list[Schema | bool] | None:
        def follow(ref: object, place: str) -> ReferenceTarget:
            target = self.find(ref, place)
            if target is None:
                raise NotMergeable("refers to nothing")
            return target

        def count_step(place: str, depth: int) -> None:
            self._notes.step(place)

        try:
            found = list(conjuncts(schema, self._references, follow, count_step, pointer))
        except NotMergeable as error:
            if error.is_mistake:
                self._notes.problem(str(error), error.pointer)
            return None
        return [_drop_place_keywords(part.schema, keep=part.is_of_this_place) for part in found]

    def as_object(self, conjunction: _Conjunction, pointer: str) -> _Conjunction:
        """A conjunction of objects with its unions merged into its properties; the unions are left to the validator."""
        schema, exact = conjunction
        for word in UNIONS:
            branches = schema.get(word)
            if isinstance(branches, list):
                self._notes.enforce(word, pointer)
                made = {
                    place: self._branch(branch, place)
                    for place, branch in (
                        (f"{pointer}/{word}/{index}", branch) for index, branch in enumerate(branches)
                    )
                }
                objects = {place: found.schema for place, found in made.items() if found is not None}
                rest = {key: value for key, value in schema.items() if key != word}
                schema = _loosen(rest, list(objects.values()), list(objects))
        for word in ("enum", "const"):
            if word in schema:
                self._notes.enforce(word, pointer)
        return _Conjunction(schema, exact)

    def have_types(self, siblings: Schema, branches: list[object], pointer: str) -> bool:
        """Whether the branches of a union, each with the keywords next to it, are types that differ from each other."""
        other = next((siblings[word] for word in UNIONS if isinstance(siblings.get(word), list)), [None])
        if len(branches) * len(other) > MAX_DISTRIBUTED:
            return False
        made = [self.merge(branch, f"{pointer}/{index}") for index, branch in enumerate(branches)]
        return any(whole is not None and _refines(siblings, whole.schema) for whole in made)

    def _branch(self, branch: object, pointer: str) -> _Conjunction | None:
        """A branch as one object; None for one that takes no object."""
        whole = self.merge(branch, pointer)
        if whole is None:
            return None if branch is False else _Conjunction({}, False)
        self.check_keywords(whole.schema, pointer)
        types = types_of(whole.schema)
        return None if types is not None and "object" not in types else self.as_object(whole, pointer)

    def check_keywords(self, schema: Schema, pointer: str) -> None:
        """Refuses what is refused, and notes what is left to the validator."""
        for word in schema:
            sentence = refusal(word)
            if sentence is not None:
                self._notes.problem(f"{word!r} is not supported: {sentence}", join_pointer(pointer, word))
            if word in ENFORCED and has_effect(word, schema):
                self._notes.enforce(word, pointer)

    def find(self, ref: object, pointer: str) -> ReferenceTarget | None:
        """Where a reference leads; None, and a note, for one that types cannot follow."""
        place = self._references.pointer_of(ref)
        target = None if place is None else self._references.find(ref)
        if target is not None:
            return target
        if place is not None:
            self._notes.problem(
                f"{place!r} does not exist in this schema; define it, or correct the reference", pointer
            )
        elif self._references.may_lead_inside(ref):
            self._notes.enforce("$ref", pointer)
        else:
            self._notes.problem(
                "only references inside this schema are supported, such as '#/$defs/<name>';"
                " nothing is read from elsewhere",
                pointer,
            )
        return None


def _sole_part(schema: Schema) -> object | None:
    """The one part of an ``allOf`` that can refuse anything, where nothing else does."""
    branches = schema.get("allOf")
    if "$ref" in schema or not isinstance(branches, list):
        return None
    own = any(word in ASSERTIONS and word != "allOf" for word in schema)
    saying = [part for part in branches if not isinstance(part, dict) or not ASSERTIONS.isdisjoint(part)]
    return saying[0] if len(saying) == 1 and not own else None


def _drop_place_keywords(part: Schema | bool, *, keep: bool) -> Schema | bool:
    if keep or isinstance(part, bool):
        return part
    return {word: value for word, value in part.items() if word not in ("default", "description", "title")}


_OF_VALUES: Final = ("enum", "const", *UNIONS)
_OF_PARTS: Final = ("items", "additionalProperties")


def _refines(siblings: Schema, branch: Schema) -> bool:
    """Whether a branch says more about the type than the keywords next to its union; both are without references.

    Branches that only require names do not: they would become classes with the same fields.

    >>> _refines({"type": "object"}, {"properties": {"kind": {"const": "a"}}})
    True
    >>> _refines({"type": "object"}, {"required": ["a"]})
    False
    """
    named = types_of(branch)
    if named is not None and not set(named) >= set(types_of(siblings) or TYPES):
        return True
    if any(word in branch for word in _OF_VALUES):
        return True
    if any(_says_more(siblings.get(word), branch[word]) for word in _OF_PARTS if word in branch):
        return True
    known = _named_properties(siblings)
    return any(_says_more(known.get(name), schema) for name, schema in _named_properties(branch).items())


def _says_more(known: object, schema: object) -> bool:
    return isinstance(schema, dict) and has_assertions(schema) and schema != known


def _named_properties(schema: Schema) -> Schema:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


# ----------------------------------------------------------------------------------------------------------------------
# The keywords of arrays and objects, in one form whichever draft they come from; and a union of objects as one object.


def _takes_only_objects(schema: Schema) -> bool:
    """Whether a schema takes objects only, and no choice among them."""
    return types_of(schema) == ["object"] and not any(word in schema for word in (*UNIONS, "enum", "const"))


def _schema_of_items(schema: Schema, pointer: str, notes: Notes) -> object | None:
    """The schema that every item of an array fits, whatever its place; None where none is known."""
    items, first = schema.get("items"), schema.get("prefixItems")
    if isinstance(items, list):
        notes.enforce("items", pointer)
        first, items = items, schema.get("additionalItems")
    if not isinstance(first, list):
        return items
    if items is None or items is True:
        if any(map(_says_something, first)):
            notes.lose(Loss.OPEN_TUPLE, pointer)
        return None
    return {"anyOf": [*first, *([items] if items is not False else [])]} if first or items else items


def _report_open_patterns(schema: Schema, pointer: str, notes: Notes) -> None:
    """Notes that patterns say something about properties of which the type says nothing."""
    patterns = schema.get("patternProperties")
    saying = any(map(_says_something, patterns.values())) if isinstance(patterns, dict) else False
    if saying and schema.get("additionalProperties", True) is True:
        notes.lose(Loss.OPEN_PATTERNS, pointer)


def _schema_of_extra_properties(schema: Schema) -> object:
    """What properties without a name of their own may hold: by their patterns, else by ``additionalProperties``."""
    extra, patterns = schema.get("additionalProperties", True), schema.get("patternProperties")
    if not isinstance(patterns, dict) or not patterns or extra is True:
        return extra
    return {"anyOf": [*patterns.values(), *([extra] if extra is not False else [])]}


def _required_names(schema: Schema, properties: Schema, pointer: str, notes: Notes) -> list[str]:
    """The required properties, declared or not."""
    names = schema.get("required", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        notes.problem("'required' must be a list of property names", f"{pointer}/required")
        return []
    for name in (name for name in names if name not in properties):
        notes.finding(
            f"'required' names {name!r}, which 'properties' does not declare; declare it, or remove it",
            f"{pointer}/required",
        )
        if schema.get("additionalProperties", True) is not True:
            notes.enforce("additionalProperties", pointer)
    return list(dict.fromkeys(names))


def _loosen(base: Schema, branches: Sequence[Schema], places: Sequence[str]) -> Schema:
    """One object that takes what ``base`` with any of the branches takes; the union itself is judged at run time.

    The arguments of a tool, which are given as keywords, must be one class.

    A property that an open branch does not declare may hold anything there; its type is what the others declare.

    :param places: the pointers of the branches.

    >>> branches = [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"required": ["a"]}]
    >>> _loosen({"type": "object"}, branches, ["/oneOf/0", "/oneOf/1"])["properties"]
    {'a': {'type': 'string', 'x-declared-by-some': '/oneOf/0/properties/a'}}
    """
    properties = dict(_properties(base))
    for name in dict.fromkeys(name for branch in branches for name in _properties(branch)):
        if name in properties and _says_something(properties[name]):
            continue
        schemas = [_properties(branch)[name] for branch in branches if name in _properties(branch)]
        distinct = [schema for index, schema in enumerate(schemas) if schema not in schemas[:index]]
        declared = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
        is_open = any(name not in _properties(branch) and not _is_closed(branch) for branch in branches)
        if is_open and all(map(_says_something, distinct)):
            first = next(at for at, branch in zip(places, branches, strict=True) if name in _properties(branch))
            declared = {**declared, DECLARED_BY_SOME: f"{first}/properties/{escape_key(name)}"}
        elif is_open:
            declared = {}
        properties[name] = {**_as_dict(properties.get(name)), **_as_dict(declared)}
    always = (
        [name for name in _required(branches[0]) if all(name in _required(b) for b in branches)] if branches else []
    )
    whole = {**base, "type": "object"}
    if properties:
        whole["properties"] = properties
    if always or "required" in base:
        whole["required"] = list(dict.fromkeys([*_required(base), *always]))
    if "additionalProperties" not in base and branches and all(map(_is_closed, branches)):
        whole["additionalProperties"] = False
    return whole


def _says_something(schema: object) -> bool:
    """Whether a schema can refuse any value."""
    return schema is False or isinstance(schema, dict) and has_assertions(schema)


def _as_dict(schema: object) -> Schema:
    return schema if isinstance(schema, dict) else {} if schema in (True, None) else {"not": {}}


def _is_closed(branch: Schema) -> bool:
    return branch.get("additionalProperties", True) is False and not branch.get("patternProperties")


def _properties(schema: Schema) -> Schema:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _required(schema: Schema) -> list[str]:
    names = schema.get("required", [])
    return names if isinstance(names, list) else []
