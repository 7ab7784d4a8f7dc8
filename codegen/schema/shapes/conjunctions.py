"""``allOf``, and ``$ref`` with keywords next to it: one type for all that must hold at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolkit.codegen.schema.conjunction import sole_part
from toolkit.codegen.schema.report import Loss
from toolkit.codegen.schema.shapes.flat_node import bare
from toolkit.codegen.schema.shapes.recursion import close, refer_back
from toolkit.jsonschema.keywords import Schema

if TYPE_CHECKING:
    from toolkit.codegen.schema.shapes.flattener import Flattener

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
