"""References to what is being made: they end there, with a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.codegen.schema.report import Loss
from toolkit.codegen.schema.shapes.flat_node import OF_ITS_PLACE, bare
from toolkit.jsonschema.keywords import Schema

if TYPE_CHECKING:
    from toolkit.codegen.schema.shapes.flattener import Flattener


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
