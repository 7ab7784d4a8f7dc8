"""Any JSON Schema into the strict mode of a provider, where that loses nothing; and the way back.

Where the provider wants every property to be required, one that could be left out may be null instead, and null is turned
back into leaving it out. Objects are closed, ``oneOf`` becomes ``anyOf``, maps are requested as lists of pairs, arrays with
a schema for each place as objects, and a root that is a union or a map as the only property of an object. Keywords that the
provider's strict mode does not have are moved into the description. Where that is not enough, the schema stays as it is and
the receipt says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.strict.arrays import closed_object, convert_array
from toolkit.adapters.strict.check import check_strict
from toolkit.adapters.strict.objects import convert_object, is_map
from toolkit.adapters.strict.receipt import Problem, StrictReceipt
from toolkit.adapters.strict.restore import Wrapped
from toolkit.adapters.strict.rules import ANNOTATIONS, OPENAI, StrictRules
from toolkit.adapters.strict.scalars import convert_scalar, nullable, types_of
from toolkit.adapters.strict.transform_state import (
    FAILED,
    Converted,
    DescriptionText,
    TransformState,
    TransformTooLarge,
)
from toolkit.adapters.strict.unions import check_choices, convert_types, convert_union
from toolkit.jsonschema.keywords import ASSERTIONS, has_assertions
from toolkit.jsonschema.pointer import join_pointer
from toolkit.schema.merge import NotMergeable

WRAPPER: Final = "arguments"
# Conditions between values, which strict mode cannot express.
_UNSERVED: Final = (
    "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies", "$dynamicRef", "$recursiveRef",
)  # fmt: skip


def to_strict(schema: Mapping[str, object], rules: StrictRules = OPENAI) -> StrictReceipt:
    """The receipt for a tool's parameters in the strict mode of one provider; the same for the same schema.

    >>> receipt = to_strict({"type": "object", "properties": {"a": {"type": "integer"}}})
    >>> receipt.schema["properties"]["a"], receipt.decode({"a": None})
    ({'type': ['integer', 'null']}, {})
    >>> to_strict({"type": "object", "properties": {"a": {}}}).problems[0].pointer
    '/properties/a'
    """
    root = dict(schema)
    if not rules.asks_for_defaults and not check_strict(root, rules):
        return StrictReceipt(root)
    try:
        receipt = _transform(root, rules)
    except TransformTooLarge as error:
        return StrictReceipt(root, (Problem("", str(error)),))
    if receipt.is_strict or rules.max_optional is None or rules.asks_for_defaults:
        return receipt
    leaner = to_strict(root, rules.leaner())
    return leaner if leaner.is_strict else receipt


def _transform(root: JsonDict, rules: StrictRules) -> StrictReceipt:
    stays = not is_map(root) and not root.keys() & {"anyOf", "oneOf", "allOf", "$ref"}
    state = TransformState(root, stays, _convert, rules)
    strict, plan = state.convert(_as_object(root, state), "", 0)
    if strict.get("type") != "object":
        strict, plan = closed_object({WRAPPER: strict}), Wrapped(WRAPPER, plan)
        state.note("", "type", "reshaped", f"requested as the property {WRAPPER!r}: the root must be a plain object")
    made = state.convert_definitions()
    if not rules.recursive:
        state.refuse_recursion()
    if made:
        strict = {**strict, "$defs": {name: definition.schema for name, definition in made.items()}}
    plans = {"#": plan, **{name: definition.plan for name, definition in made.items()}}
    check_choices(state, strict, plans)
    problems = tuple(state.problems) or tuple(
        Problem("", f"{why} (in the strict form, at {pointer!r})" if pointer else why)
        for pointer, why in check_strict(strict, rules)
    )
    if problems:
        return StrictReceipt(root, problems, tuple(state.notes))
    return StrictReceipt(strict, (), tuple(state.notes), plan, plans)


def _as_object(root: JsonDict, state: TransformState) -> Any:
    """The root as an object, as arguments are, whatever else it allows; merged here, so that an object stays one."""
    try:
        whole = state.flatten(root)
    except NotMergeable:
        return root  # reported where it is met
    types = whole.get("type", "object") if whole is not False else ()
    if "object" not in (types if isinstance(types, list | tuple) else [types]):
        state.fail("", "the arguments are an object, but the schema accepts no object")
    return {**(whole or {}), "type": "object"}


def _convert(state: TransformState, schema: Any, pointer: str, depth: int) -> Converted:
    if schema is False:
        return state.fail(pointer, "no value is valid here")
    if schema is True or (isinstance(schema, dict) and not has_assertions(schema)):
        return state.fail(pointer, "any value is valid here, and strict mode does not support such a schema")
    if not isinstance(schema, dict):
        return state.fail(pointer, "is not a schema")
    schema = state.references.without_ignored(schema)
    if "$ref" in schema or "allOf" in schema:
        try:
            if ASSERTIONS.intersection(schema) == {"$ref"}:
                return _convert_reference(state, schema, pointer)
            whole = state.flatten(schema)
        except NotMergeable as error:
            return state.fail(pointer, str(error))
        return state.convert(whole, pointer, depth + 1)
    unserved = [word for word in _UNSERVED if word in schema]
    for word in unserved:
        state.fail(join_pointer(pointer, word), f"strict mode does not support {word!r}")
    if unserved:
        return FAILED
    if "anyOf" in schema or "oneOf" in schema:
        return convert_union(state, schema, pointer, depth)
    return _convert_typed(state, schema, pointer, depth)


def _convert_reference(state: TransformState, schema: JsonDict, pointer: str) -> Converted:
    made = state.refer_to_definition(schema["$ref"])
    text = DescriptionText(state, schema, pointer)
    text.move_all_but(("$ref", *ANNOTATIONS))
    return Converted(text.add_to(made.schema), made.plan)


def _convert_typed(state: TransformState, schema: JsonDict, pointer: str, depth: int) -> Converted:
    types = types_of(state, schema, pointer)
    named = [name for name in types if name != "null"]
    if len(named) > 1:
        return convert_types(state, schema, types, pointer, depth)
    if not named:
        return convert_scalar(state, schema, pointer, "null") if types else FAILED
    if named == ["object"]:
        made = convert_object(state, schema, pointer, depth)
    elif named == ["array"]:
        made = convert_array(state, schema, pointer, depth)
    else:
        made = convert_scalar(state, schema, pointer, named[0])
    return Converted(nullable(made.schema), made.plan) if "null" in types and made is not FAILED else made
