"""Lists in strict form; those with a schema for each place as objects with a property for each."""

from __future__ import annotations

from typing import Any

from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.strict import rules
from toolkit.adapters.strict.restore import KEEP, Each, Places, RestorePlan
from toolkit.adapters.strict.transform_state import Converted, DescriptionText, Work
from toolkit.jsonschema.pointer import join_pointer
from toolkit.jsonschema.values import has_type


def convert_array(work: Work, schema: JsonDict, pointer: str, depth: int) -> Converted:
    if "enum" in schema or "const" in schema:
        return work.fail(pointer, "lists one by one cannot be said in strict mode")
    if schema.get("prefixItems") or isinstance(schema.get("items"), list):
        return _convert_places(work, schema, pointer, depth)
    if "items" not in schema:
        return work.fail(pointer, "a list of any values, and strict mode knows no such schema")
    if schema.get("unevaluatedItems", True) not in (True, False):
        return work.fail(join_pointer(pointer, "unevaluatedItems"), "strict mode has nothing like 'unevaluatedItems'")
    inner = work.convert(schema["items"], join_pointer(pointer, "items"), depth + 1)
    limits = {word: schema[word] for word in ("minItems", "maxItems") if has_type(schema.get(word), "integer")}
    words = DescriptionText(work, schema, pointer)
    words.move_all_but((*rules.ANYWHERE, "items", "prefixItems", "additionalItems", "unevaluatedItems", *limits))
    strict = words.on({"type": "array", "items": inner.schema, **limits})
    return Converted(strict, _each(inner.plan))


def _each(plan: RestorePlan) -> RestorePlan:
    return KEEP if plan == KEEP else Each(plan)


def _convert_places(work: Work, schema: JsonDict, pointer: str, depth: int) -> Converted:
    word = "prefixItems" if schema.get("prefixItems") else "items"
    rest = schema.get("items" if word == "prefixItems" else "additionalItems", True)
    parts: Any = schema[word]
    if not isinstance(parts, list):
        return work.fail(pointer, f"{word!r} must be a list")
    count, most = len(parts), schema.get("maxItems")
    if schema.get("minItems") != count or not (rest is False or most == count):
        return work.fail(
            join_pointer(pointer, word),
            "a list with a schema for each place must say with 'minItems' and 'maxItems' how many",
        )
    place = join_pointer(pointer, word)
    inner = [work.convert(part, join_pointer(place, at), depth + 1) for at, part in enumerate(parts)]
    words = DescriptionText(work, schema, pointer)
    words.move_all_but((*rules.ANYWHERE, "items", "prefixItems", "additionalItems", "minItems", "maxItems"))
    if all(one == inner[0] for one in inner):
        strict = {"type": "array", "items": inner[0].schema, "minItems": count, "maxItems": count}
        return Converted(words.on(strict), _each(inner[0].plan))
    names = [f"item_{number}" for number in range(1, count + 1)]
    words.say(
        "a list, given as an object with a property for each place",
        word,
        "reshaped",
        "a list with a schema for each place is asked for as an object",
    )
    made = closed({name: one.schema for name, one in zip(names, inner, strict=True)})
    plans = {name: one.plan for name, one in zip(names, inner, strict=True)}
    return Converted(words.on(made), Places(plans))


def closed(properties: JsonDict) -> JsonDict:
    """An object of exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
