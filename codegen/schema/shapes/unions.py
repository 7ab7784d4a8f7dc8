"""``anyOf`` and ``oneOf``, with what is next to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolkit.codegen.schema.conjunction import Conjunction
from toolkit.codegen.schema.disjoint import exclude_each_other
from toolkit.codegen.schema.objects import takes_only_objects
from toolkit.codegen.schema.report import Loss
from toolkit.codegen.schema.shapes.flat_node import bare, size
from toolkit.codegen.schema.shapes.types import shape_types
from toolkit.jsonschema.keywords import ASSERTIONS, UNIONS, Schema

if TYPE_CHECKING:
    from toolkit.codegen.schema.shapes.flattener import Flattener

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
