"""``$ref``: what it leads to is made once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.codegen.package import python_names
from toolkit.codegen.schema.naming.flat_nodes import sole_name
from toolkit.codegen.schema.naming.name_hint import NameHint
from toolkit.codegen.schema.report import Loss
from toolkit.codegen.schema.shapes.conjunctions import shape_conjunction
from toolkit.codegen.schema.shapes.flat_node import bare, size
from toolkit.codegen.schema.shapes.recursion import close, refer_back
from toolkit.jsonschema.keywords import ASSERTIONS, Schema
from toolkit.jsonschema.pointer import split_pointer

if TYPE_CHECKING:
    from toolkit.codegen.schema.shapes.flattener import Flattener


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
