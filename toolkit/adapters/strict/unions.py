"""One of several forms in strict form: ``anyOf``, ``oneOf``, and schemas of more than one type."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, permutations
from typing import Any, Final

from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.strict import rules
from toolkit.adapters.strict.objects import is_map
from toolkit.adapters.strict.restore import KEEP, Choice, Defined, RestorePlan
from toolkit.adapters.strict.scalars import listed_values
from toolkit.adapters.strict.transform_state import Converted, DescriptionText, TransformState
from toolkit.jsonschema.keywords import APPLIES_TO, ASSERTIONS, TYPE_WORDS
from toolkit.jsonschema.pointer import find_at, join_pointer, split_pointer
from toolkit.jsonschema.types import types_of
from toolkit.jsonschema.values import are_disjoint
from toolkit.schema.merge import NotMergeable

# More forms than this are not compared with each other.
_MAX_COMPARED: Final = 40


def convert_types(state: TransformState, schema: JsonDict, types: list[str], pointer: str, depth: int) -> Converted:
    """A schema of several types: one form for each, with the keywords of that type."""
    common = {word: schema[word] for word in ("enum", "const") if word in schema}
    forms = [
        {"type": name, **common, **{word: schema[word] for word in TYPE_WORDS[name] if word in schema}}
        for name in types
    ]
    made = [state.convert(form, pointer, depth + 1) for form in forms]
    text = DescriptionText(state, schema, pointer)
    text.move_all_but((*rules.ANYWHERE, *APPLIES_TO))
    return _join(state, text, "type", made, pointer)


def convert_union(state: TransformState, schema: JsonDict, pointer: str, depth: int) -> Converted:
    """``anyOf`` and ``oneOf``; the keywords next to them hold in every branch."""
    word = "anyOf" if "anyOf" in schema else "oneOf"
    branches = schema[word]
    if "anyOf" in schema and "oneOf" in schema:
        return state.fail(pointer, "'anyOf' and 'oneOf' in the same schema cannot be combined")
    if not isinstance(branches, list) or not branches:
        return state.fail(pointer, f"{word!r} must be a list of schemas")
    base = {key: value for key, value in schema.items() if key != word and key in ASSERTIONS}
    forms: list[tuple[Any, str]] = []
    for at, branch in enumerate(branches):
        place = join_pointer(pointer, word, at)
        try:
            whole = state.with_base(base, branch)
        except NotMergeable as error:
            state.fail(place, str(error))
            continue
        if whole is not False:
            forms.append((whole, place))
    if not forms:
        return state.fail(pointer, "no value is valid here")
    if word == "oneOf" and not _exclude_each_other(state, [form for form, _ in forms]):
        state.note(
            pointer, word, "loosened", "written as 'anyOf': an answer that fits several branches is refused later"
        )
    made = [state.convert(form, place, depth + 1) for form, place in forms]
    text = DescriptionText(state, schema, pointer)
    text.move_all_but((word, *base, *rules.ANNOTATIONS))
    return _join(state, text, word, made, pointer)


def _join(state: TransformState, text: DescriptionText, word: str, made: list[Converted], pointer: str) -> Converted:
    if len(made) == 1:
        # Its own description stays: the outer one goes around it.
        outside = text.add_to({})
        return Converted({"anyOf": [made[0].schema], **outside} if outside else made[0].schema, made[0].plan)
    strict = text.add_to({"anyOf": [one.schema for one in made]})
    if all(one.plan == KEEP for one in made):
        return Converted(strict)
    choice = Choice(tuple((one.schema, one.plan) for one in made))
    state.choices.append((pointer, word, choice))
    return Converted(strict, choice)


def _exclude_each_other(state: TransformState, forms: list[Any]) -> bool:
    """Whether no answer to one form ever fits another; only what is plain counts."""
    if len(forms) > _MAX_COMPARED:
        return False
    try:
        whole = [state.flatten(form) for form in forms]
    except NotMergeable:
        return False
    return all(_never_fits(state, one, other) for one, other in permutations(whole, 2))


def _never_fits(state: TransformState, answered: Any, schema: Any) -> bool:
    """Whether what is answered to the strict form of ``answered`` cannot fit ``schema``."""
    if answered is False or schema is False or _types_apart(answered, schema):
        return True
    values, others = listed_values(answered), listed_values(schema)
    if values is not None and others is not None:
        return are_disjoint(values, others)
    mine, theirs = answered.get("properties"), schema.get("properties", {})
    if not isinstance(mine, dict) or not isinstance(theirs, dict):
        return False
    given = [name for name in _texts(answered.get("required")) if name in mine]
    if not is_map(answered) and any(name not in mine for name in _texts(schema.get("required"))):
        return _is_object(schema)
    if schema.get("additionalProperties") is False and any(name not in theirs for name in given):
        return _is_object(schema)
    return any(_properties_apart(state, mine[name], theirs[name]) for name in given if name in theirs)


def _is_object(schema: JsonDict) -> bool:
    """Whether a schema's keywords about properties apply to every value it takes."""
    return bool(schema.get("type", "object") == "object")


def _properties_apart(state: TransformState, one: Any, other: Any) -> bool:
    try:
        mine, theirs = state.flatten(one), state.flatten(other)
    except NotMergeable:
        return False
    if mine is False or theirs is False:
        return True
    values, others = listed_values(mine), listed_values(theirs)
    return _types_apart(mine, theirs) or (values is not None and others is not None and are_disjoint(values, others))


def _types_apart(one: JsonDict, other: JsonDict) -> bool:
    mine, theirs = _types(one), _types(other)
    return bool(mine and theirs) and mine.isdisjoint(theirs)


def _types(schema: JsonDict) -> set[str]:
    named = set(types_of(schema) or ())
    return named | {"integer"} if "number" in named else named


def _texts(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def check_choices(state: TransformState, strict: JsonDict, plans: Mapping[str, RestorePlan]) -> None:
    """Notes where an answer can have two forms that are read in different ways."""

    def follow(form: tuple[JsonDict, RestorePlan]) -> tuple[JsonDict, RestorePlan]:
        schema, plan = form
        if "$ref" in schema:
            schema = find_at(strict, split_pointer(schema["$ref"][1:]))[0]
        return schema, plans.get(plan.name, KEEP) if isinstance(plan, Defined) else plan

    for pointer, word, choice in state.choices:
        forms = [follow(form) for form in choice.forms]
        # Many forms are compared with the first only, and count as ambiguous if they are read differently.
        few = len(forms) <= _MAX_COMPARED
        pairs = combinations(forms, 2) if few else ((forms[0], form) for form in forms[1:])
        if any(plan != its and not (few and _forms_apart(one, other)) for (one, plan), (other, its) in pairs):
            state.note(pointer, word, "reshaped", "an answer that fits several forms is read as the first of them")


def _forms_apart(one: JsonDict, other: JsonDict) -> bool:
    """Whether no answer has both strict forms."""
    if _types_apart(one, other):
        return True
    mine, theirs = one.get("properties"), other.get("properties")
    if mine is None or theirs is None:
        return False
    given = {*one["required"], *other["required"]}
    shared = [(listed_values(mine[name]), listed_values(theirs[name])) for name in mine.keys() & theirs.keys() & given]
    differ = any(a is not None and b is not None and are_disjoint(a, b) for a, b in shared)
    # What one form requires, the other has no place for.
    return bool(given - (mine.keys() & theirs.keys())) or differ
