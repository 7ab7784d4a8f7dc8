"""Objects in strict form: closed, every property required where the provider wants that; maps become lists of pairs."""

from __future__ import annotations

from typing import Any, Final

from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.strict import rules
from toolkit.adapters.strict.arrays import closed_object
from toolkit.adapters.strict.restore import NOTHING, Member, Members, Pairs
from toolkit.adapters.strict.scalars import convert_scalar, nullable
from toolkit.adapters.strict.transform_state import FAILED, Converted, DescriptionText, TransformState
from toolkit.jsonschema.keywords import ASSERTIONS, has_assertions
from toolkit.jsonschema.pointer import join_pointer
from toolkit.jsonschema.values import has_type

_SERVED: Final = (*rules.ANYWHERE, *rules.OPENAI.keywords["object"], "unevaluatedProperties", "patternProperties")
_KEY_WORDS: Final = frozenset({"type", "pattern", "format", "enum", "const", "minLength", "maxLength"})
_OPEN: Final = "properties of any name and any value are allowed, and strict mode supports only named ones"


def is_map(schema: JsonDict) -> bool:
    """Whether properties may be given whose names the schema does not know, but whose values it describes."""
    extra = schema.get("additionalProperties")
    return (isinstance(extra, dict) and has_assertions(extra)) or bool(schema.get("patternProperties"))


def convert_object(state: TransformState, schema: JsonDict, pointer: str, depth: int) -> Converted:
    if "enum" in schema or "const" in schema:
        return state.fail(pointer, "strict mode cannot list whole objects in 'enum' or 'const'")
    names, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(names, dict) or not isinstance(required, list) or not all(isinstance(n, str) for n in required):
        return state.fail(pointer, "'properties' must be an object and 'required' a list of names")
    if schema.get("patternProperties"):
        return _convert_pattern_map(state, schema, pointer, depth)
    word = "additionalProperties" if "additionalProperties" in schema else "unevaluatedProperties"
    if is_map(schema):
        if not names:
            return _convert_map(state, schema, pointer, depth, (schema[word], join_pointer(pointer, word)), {})
    elif word in schema:
        if schema[word] is not False:
            return state.fail(join_pointer(pointer, word), _OPEN)
    elif not names and pointer:  # arguments without properties are those of a tool that takes none
        return state.fail(pointer, _OPEN)
    return _convert_members(state, schema, pointer, depth)


def _convert_members(state: TransformState, schema: JsonDict, pointer: str, depth: int) -> Converted:
    names: JsonDict = schema.get("properties", {})
    required = schema.get("required", [])
    for name in required:
        if name not in names:
            state.fail(pointer, f"the property {str(name)[:80]!r} is required but not described")
    properties: JsonDict = {}
    members: dict[str, Member] = {}
    given: list[str] = []  # could be left out, but are asked for
    for name, inner in names.items():
        place = join_pointer(pointer, "properties", name)
        if inner is False and name not in required:
            state.note(place, "", "dropped", "no value is valid here, so it is not requested")
            continue
        made = state.convert(inner, place, depth + 1)
        if name in required or not state.rules.all_required:
            properties[name], members[name] = made.schema, Member(made.plan)
            if name not in required and _has_usable_default(state, inner):
                given.append(name)
        else:
            properties[name], members[name] = _optional(state, inner, made, place)
    text = DescriptionText(state, schema, pointer)
    rest = _add_rest(state, schema, pointer, depth, properties, members) if is_map(schema) else None
    text.move_all_but((*_SERVED, *_list_satisfied(state, schema)))
    must = [name for name in properties if state.rules.all_required or name in (*required, *given, rest)]
    strict = text.add_to(closed_object(properties, must))
    if rest is None and all(member.is_kept for member in members.values()):
        return Converted(strict)
    return Converted(strict, Members(members, rest))


def _has_usable_default(state: TransformState, inner: Any) -> bool:
    """Whether the model must give this property although it has a default, which is then the same as leaving it out."""
    is_asked = state.rules.asks_for_defaults and isinstance(inner, dict) and "default" in inner
    return is_asked and state.fits(inner["default"], inner)


def _optional(state: TransformState, inner: Any, made: Converted, place: str) -> tuple[JsonDict, Member]:
    """A property that could be left out: null means that, unless null means something else already."""
    if made is FAILED:
        return made.schema, Member()  # one problem a place
    default = inner.get("default", NOTHING) if isinstance(inner, dict) else NOTHING
    if default is not NOTHING and not state.fits(default, inner):
        state.note(place, "default", "dropped", "is not valid for its own schema and is ignored")
        default = NOTHING
    if not state.fits(None, inner):
        return nullable(made.schema), Member(made.plan, True, default)
    if default is NOTHING:
        state.fail(place, "may be null and may be omitted, without a default: strict mode cannot distinguish the two")
    # Left out is the same as its default, so that nothing is lost if it must be given.
    return made.schema, Member(made.plan, False, default)


def _list_satisfied(state: TransformState, schema: JsonDict) -> list[str]:
    """Keywords that every answer of the closed object satisfies."""
    names: JsonDict = schema.get("properties", {})
    fewest: Any = schema.get("minProperties")
    most: Any = schema.get("maxProperties")
    found = {
        "minProperties": has_type(fewest, "integer") and fewest <= len(schema.get("required", [])),
        "maxProperties": has_type(most, "integer") and most >= len(names) and not is_map(schema),
        "propertyNames": not is_map(schema) and all(state.fits(name, schema.get("propertyNames", True)) for name in names),
    }  # fmt: skip
    return [word for word, holds in found.items() if holds]


def _add_rest(
    state: TransformState, schema: JsonDict, pointer: str, depth: int, properties: JsonDict, members: dict[str, Member]
) -> str:
    """One more property for the pairs whose names are not in the schema."""
    name = "additional_properties"
    while name in schema["properties"]:
        name += "_"
    # Words about all properties must not be applied to the others alone.
    bare: JsonDict = {word: schema[word] for word in ("additionalProperties", "propertyNames") if word in schema}
    place = (schema["additionalProperties"], join_pointer(pointer, "additionalProperties"))
    made = _convert_map(state, bare, pointer, depth, place, {})
    properties[name], members[name] = made.schema, Member(made.plan)
    return name


def _convert_pattern_map(state: TransformState, schema: JsonDict, pointer: str, depth: int) -> Converted:
    patterns = schema["patternProperties"]
    extra = schema.get("additionalProperties", schema.get("unevaluatedProperties", False))
    if not isinstance(patterns, dict) or len(patterns) > 1 or schema.get("properties") or extra is not False:
        return state.fail(
            join_pointer(pointer, "patternProperties"),
            "strict mode does not support 'patternProperties' next to other properties",
        )
    [(pattern, inner)] = patterns.items()
    place = join_pointer(pointer, "patternProperties", pattern)
    return _convert_map(state, schema, pointer, depth, (inner, place), {"pattern": pattern})


def _convert_map(
    state: TransformState, schema: JsonDict, pointer: str, depth: int, values: tuple[Any, str], key_rule: JsonDict
) -> Converted:
    """A map as a list of pairs; rules for names become rules for keys, limits of their number limits of the list."""
    inner = state.convert(*values, depth + 1)
    text = DescriptionText(state, schema, pointer)
    served = {*_SERVED} - {"required"}
    names = schema.get("propertyNames")
    if isinstance(names, dict) and not key_rule and _KEY_WORDS.issuperset(ASSERTIONS.intersection(names)):
        key_rule = names
        served.add("propertyNames")
    key = convert_scalar(state, {**key_rule, "type": "string"}, join_pointer(pointer, "propertyNames"), "string")
    limits = {}
    for word, limit in (("minProperties", "minItems"), ("maxProperties", "maxItems")):
        if state.rules.takes("array", limit, schema.get(word)):
            limits[limit] = schema[word]
            served.add(word)
            state.note(pointer, word, "loosened", "pairs are counted, including those with the same key")
    text.say(
        "a map, sent as a list of keys and values",
        "patternProperties" if "patternProperties" in schema else "additionalProperties",
        "reshaped",
        "a map is requested as a list of pairs; of two with the same key the last one counts",
    )
    text.move_all_but(tuple(served))
    pairs = closed_object({"key": key.schema, "value": inner.schema})
    return Converted(text.add_to({"type": "array", "items": pairs, **limits}), Pairs(inner.plan))
