"""Arrays in strict form; those with a schema for each place become objects with a property for each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.strict import rules
from toolkit.adapters.strict.restore import KEEP, Each, Places, RestorePlan
from toolkit.adapters.strict.transform_state import Converted, DescriptionText, TransformState
from toolkit.jsonschema.pointer import join_pointer


def convert_array(state: TransformState, schema: JsonDict, pointer: str, depth: int) -> Converted:
    if "enum" in schema or "const" in schema:
        return state.fail(pointer, "strict mode cannot list whole arrays in 'enum' or 'const'")
    if schema.get("prefixItems") or isinstance(schema.get("items"), list):
        return _convert_places(state, schema, pointer, depth)
    if "items" not in schema:
        return state.fail(pointer, "an array of any values, which strict mode does not support; add 'items'")
    if schema.get("unevaluatedItems", True) not in (True, False):
        return state.fail(join_pointer(pointer, "unevaluatedItems"), "strict mode does not support 'unevaluatedItems'")
    inner = state.convert(schema["items"], join_pointer(pointer, "items"), depth + 1)
    words = ("minItems", "maxItems")
    limits = {word: schema[word] for word in words if state.rules.takes("array", word, schema.get(word))}
    text = DescriptionText(state, schema, pointer)
    text.move_all_but((*rules.ANYWHERE, "items", "prefixItems", "additionalItems", "unevaluatedItems", *limits))
    strict = text.add_to({"type": "array", "items": inner.schema, **limits})
    return Converted(strict, _each(inner.plan))


def _each(plan: RestorePlan) -> RestorePlan:
    return KEEP if plan == KEEP else Each(plan)


def _convert_places(state: TransformState, schema: JsonDict, pointer: str, depth: int) -> Converted:
    word = "prefixItems" if schema.get("prefixItems") else "items"
    rest = schema.get("items" if word == "prefixItems" else "additionalItems", True)
    parts: Any = schema[word]
    if not isinstance(parts, list):
        return state.fail(pointer, f"{word!r} must be a list")
    count, most = len(parts), schema.get("maxItems")
    if schema.get("minItems") != count or not (rest is False or most == count):
        return state.fail(
            join_pointer(pointer, word),
            "an array with a schema for each position must have a fixed length: set 'minItems' and 'maxItems'",
        )
    place = join_pointer(pointer, word)
    inner = [state.convert(part, join_pointer(place, at), depth + 1) for at, part in enumerate(parts)]
    text = DescriptionText(state, schema, pointer)
    text.move_all_but((*rules.ANYWHERE, "items", "prefixItems", "additionalItems", "minItems", "maxItems"))
    limits = {"minItems": count, "maxItems": count}
    is_taken = all(state.rules.takes("array", limit, count) for limit in limits)
    if is_taken and all(one == inner[0] for one in inner):
        strict = {"type": "array", "items": inner[0].schema, **limits}
        return Converted(text.add_to(strict), _each(inner[0].plan))
    names = [f"item_{number}" for number in range(1, count + 1)]
    text.say(
        "a list, sent as an object with one property for each position",
        word,
        "reshaped",
        "an array with a schema for each position is requested as an object",
    )
    made = closed_object({name: one.schema for name, one in zip(names, inner, strict=True)})
    plans = {name: one.plan for name, one in zip(names, inner, strict=True)}
    return Converted(text.add_to(made), Places(plans))


def closed_object(properties: JsonDict, required: Iterable[str] | None = None) -> JsonDict:
    """The schema of an object with no other properties than these; all are required unless ``required`` says which."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties if required is None else required),
        "additionalProperties": False,
    }
