"""Any JSON Schema into the strict mode of a provider, where that loses nothing; and the way back.

Where the provider wants every property to be required, one that could be left out may be null instead, and null is turned
back into leaving it out. Objects are closed, ``oneOf`` becomes ``anyOf``, maps are requested as lists of pairs, arrays with
a schema for each place as objects, and a root that is a union or a map as the only property of an object. Keywords that the
provider's strict mode does not have are moved into the description. Where that is not enough, the schema stays as it is and
the receipt says why.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations, permutations
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from toolkit.adapters.strict import rules
from toolkit.adapters.strict.check import check_strict
from toolkit.adapters.strict.receipt import (
    KEEP,
    NOTHING,
    Choice,
    Defined,
    Each,
    Effect,
    Member,
    Members,
    Note,
    Pairs,
    Places,
    Problem,
    RestorePlan,
    StrictReceipt,
    Wrapped,
)
from toolkit.adapters.strict.rules import ANNOTATIONS, OPENAI, StrictRules
from toolkit.adapters.values import JsonDict, compact
from toolkit.schema.accepts import Judge, are_disjoint, has_type, same_json
from toolkit.schema.keywords import (
    APPLIES_TO,
    ASSERTIONS,
    DEFINITIONS,
    IDENTIFIERS,
    TYPE_WORDS,
    TYPES,
    References,
    ReferenceTarget,
    as_types,
    find_at,
    has_assertions,
    join_pointer,
    split_pointer,
    types_of,
)
from toolkit.schema.merge import NotMergeable, conjuncts, merge

MAX_NODES: Final = 20_000
MAX_DEPTH: Final = 64
MAX_PROBLEMS: Final = 100
MAX_VALUE_TEXT: Final = 500
MAX_MERGED: Final = 32
MAX_LENGTH: Final = 1_000
"""How long a text may be for a pattern to say so: patterns grow with it."""
ROOT: Final = "#"
WRAPPER: Final = "arguments"
Merged: TypeAlias = JsonDict | Literal[False]
"""A schema without ``allOf`` and ``$ref``, or False where no value fits."""
# More forms than this are not compared with each other.
_MAX_COMPARED: Final = 40
_SILENT: Final = IDENTIFIERS | DEFINITIONS
_ODD: Final = re.compile(r"[^A-Za-z0-9_.-]+")
# By which keywords an untyped schema shows what its author had in mind.
_SHOWN_BY: Final = {
    "object": ("properties", "required", "additionalProperties", "patternProperties"),
    "array": ("items", "prefixItems"),
    "string": ("pattern", "minLength", "maxLength"),
    "number": rules.OPENAI.keywords["number"],
}
_LENGTHS: Final = ("minLength", "maxLength")
# A pattern of one character or class, again and again: the only kind that can say how often as well.
_REPEATED: Final = re.compile(r"\^(?P<what>\[\^?[^\[\]\\]+\]|\[\\s\\S\]|\\[dwsDWS]|\.)(?P<how>[+*])\$")
_ANY_TEXT: Final = r"^[\s\S]*$"
_SERVED: Final = (*rules.ANYWHERE, *rules.OPENAI.keywords["object"], "unevaluatedProperties", "patternProperties")
# Conditions between values, which strict mode cannot express.
_UNSERVED: Final = (
    "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies", "$dynamicRef", "$recursiveRef",
)  # fmt: skip
_KEY_WORDS: Final = frozenset({"type", "pattern", "format", "enum", "const", "minLength", "maxLength"})
_OPEN: Final = "properties of any name and any value are allowed, and strict mode supports only named ones"


# -- the transform -------------------------------------------------------------------------------------------------------


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
    types = stated_types(state, schema, pointer)
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


# -- what all parts share: what was found so far, references and merging, descriptions -----------------------------------


class Converted(NamedTuple):
    """A schema for strict mode, and the way back from its answers."""

    schema: JsonDict
    plan: RestorePlan = KEEP


# With a problem the whole is not sent, so anything may take the place.
FAILED: Final = Converted({"type": "null"})


class TransformTooLarge(Exception):
    """More work than any tool's schema needs."""


class _WaitingDefinition(NamedTuple):
    name: str
    target: ReferenceTarget


class TransformState:
    """One transform of one schema. ``convert`` turns any schema below the root."""

    def __init__(
        self,
        root: JsonDict,
        root_stays: bool,
        convert: Callable[[TransformState, Any, str, int], Converted],
        rules: StrictRules,
    ) -> None:
        self.root = root
        self.rules: Final = rules
        # Each once, in the order they were found.
        self.problems: dict[Problem, None] = {}
        self.notes: dict[Note, None] = {}
        self.choices: list[tuple[str, str, Choice]] = []
        self._convert = convert
        self.references: Final = References(root)
        self._judge = Judge(root)
        self._nodes = 0
        self._by_place: dict[str, str] = {"": ROOT} if root_stays else {}
        self._names: Counter[str] = Counter()
        self._waiting: deque[_WaitingDefinition] = deque()
        # Which definitions refer to which; the root counts as one.
        self._inside = ROOT
        self._leads_to: dict[str, set[str]] = {}

    def convert(self, schema: Any, pointer: str, depth: int) -> Converted:
        self.spend(pointer)
        if depth > MAX_DEPTH:
            return self.fail(pointer, f"nested deeper than {MAX_DEPTH} schemas")
        return self._convert(self, schema, pointer, depth)

    def spend(self, pointer: str = "") -> None:
        """Counts one schema looked at; merging looks at some more than once."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise TransformTooLarge(f"the schema has more than {MAX_NODES} parts")

    def fail(self, pointer: str, why: str) -> Converted:
        """Records why strict mode cannot carry this."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems[Problem(self._existing_pointer(pointer), why)] = None
        return FAILED

    def note(self, pointer: str, keyword: str, effect: Effect, what: str) -> None:
        place = self._existing_pointer(join_pointer(pointer, keyword)) if keyword else ""
        last = join_pointer("", keyword)
        pointer = place.removesuffix(last) if keyword and place.endswith(last) else self._existing_pointer(pointer)
        self.notes[Note(pointer, keyword, effect, what)] = None

    def _existing_pointer(self, pointer: str) -> str:
        """The pointer to a place the schema has: what was merged into a branch is next to the union, or nowhere."""
        path = split_pointer(pointer)
        count = find_at(self.root, path)[1]
        if count == len(path):
            return pointer
        if count > 1 and path[count - 2] in ("anyOf", "oneOf") and path[count - 1].isdecimal():
            around = [*path[: count - 2], *path[count:]]
            if find_at(self.root, around)[1] > count - 2:
                return self._existing_pointer(join_pointer("", *around))
        return join_pointer("", *path[:count])

    def fits(self, value: Any, schema: Any) -> bool:
        return self._judge.fits(value, schema)

    def flatten(self, schema: Any) -> Merged:
        """The schema with ``allOf`` and ``$ref`` merged into it; raises ``NotMergeable``."""
        return self._merge(self._conjuncts(schema))

    def with_base(self, base: JsonDict, branch: Any) -> Merged:
        """A branch of a union merged with the keywords next to the union."""
        return self._merge([*self._conjuncts(branch), base]) if base else branch

    def _conjuncts(self, schema: Any) -> list[JsonDict | bool]:
        found = conjuncts(schema, self.references, self._follow, self._check_depth)
        return [conjunct.schema for conjunct in found]

    def _merge(self, parts: list[JsonDict | bool]) -> Merged:
        merged = merge(parts)
        if merged.is_empty:
            return False
        if merged.why_wider is not None:
            raise NotMergeable(merged.why_wider)
        return merged.schema

    def _check_depth(self, pointer: str, depth: int) -> None:
        if depth > MAX_MERGED:
            raise NotMergeable(f"'allOf' and '$ref' join more than {MAX_MERGED} schemas")

    def _follow(self, ref: Any, pointer: str = "") -> ReferenceTarget:
        self.spend()
        target = self.references.find(ref)
        if target is None:
            what = "nothing" if str(ref).startswith("#") else "something outside the schema"
            raise NotMergeable(f"the reference {str(ref)[:80]!r} refers to {what}")
        return target

    def refer_to_definition(self, ref: Any) -> Converted:
        """A reference to a definition, which is made when all else is done; raises ``NotMergeable``."""
        target = self._follow_to_end(ref)
        name = self._by_place.get(target.pointer)
        if name is None:
            name = self._by_place[target.pointer] = self._choose_name(target.pointer)
            self._waiting.append(_WaitingDefinition(name, target))
        self._leads_to.setdefault(self._inside, set()).add(name)
        return Converted({"$ref": ROOT if name == ROOT else f"#/$defs/{name}"}, Defined(name))

    def convert_definitions(self) -> dict[str, Converted]:
        """All definitions that something leads to."""
        made: dict[str, Converted] = {}
        while self._waiting:
            definition = self._waiting.popleft()
            self._inside = definition.name
            made[definition.name] = self.convert(definition.target.schema, definition.target.pointer, 1)
        return made

    def refuse_recursion(self) -> None:
        """Records the definitions that contain themselves as problems."""
        for place, name in self._by_place.items():
            seen: set[str] = set()
            pending = [name]
            while pending:
                following = self._leads_to.get(pending.pop(), set()) - seen
                seen |= following
                pending += following
            if name in seen:
                self.fail(place, "the schema contains itself, which this strict mode does not support")

    def _follow_to_end(self, ref: Any) -> ReferenceTarget:
        """Where a reference leads in the end, when it leads to a mere reference."""
        seen = set()
        target = self._follow(ref)
        while isinstance(target.schema, dict) and set(target.schema) == {"$ref"}:
            if target.pointer in seen:
                raise NotMergeable("'$ref' is circular")
            seen.add(target.pointer)
            target = self._follow(target.schema["$ref"])
        return target

    def _choose_name(self, pointer: str) -> str:
        path = split_pointer(pointer)
        stem = (_ODD.sub("_", path[-1])[:60] if path else "root") or "schema"
        self._names[stem] += 1
        # No stem ends with two dashes and a number, so that made names differ from all others.
        return stem if self._names[stem] == 1 else f"{stem}--{self._names[stem]}"


class DescriptionText:
    """The title and description of a strict schema; keywords that strict mode does not have are written into the latter."""

    def __init__(self, state: TransformState, schema: JsonDict, pointer: str) -> None:
        self._state, self._schema, self._pointer = state, schema, pointer
        self._moved: list[str] = []

    def move(self, keyword: str) -> None:
        """Writes a keyword into the description."""
        text = compact(self._schema[keyword])
        if len(text) > MAX_VALUE_TEXT:
            text = f"{text[:MAX_VALUE_TEXT]}…"
        self.say(f"{keyword}: {text}", keyword, "moved", "written in the description")

    def say(self, text: str, keyword: str, effect: Effect, what: str) -> None:
        self._moved.append(text)
        self._state.note(self._pointer, keyword, effect, what)

    def move_all_but(self, served: tuple[str, ...]) -> None:
        """Writes every keyword into the description that is neither served nor about the document."""
        for word in self._schema:
            if word not in served and word not in _SILENT and not word.startswith("x-"):
                self.move(word)

    def add_to(self, strict: JsonDict) -> JsonDict:
        """The strict schema with title and description."""
        title, description = self._schema.get("title"), self._schema.get("description")
        text = description if isinstance(description, str) else ""
        if self._moved:
            text = f"{text} ({'; '.join(self._moved)})".strip()
        spoken = {"title": title if isinstance(title, str) else "", "description": text}
        added = {word: value for word, value in spoken.items() if value}
        if added and "$ref" in strict:
            return {"anyOf": [strict], **added}
        return {**strict, **added}


def stated_types(state: TransformState, schema: JsonDict, pointer: str) -> list[str]:
    """The types a value may have; none after a problem. An untyped schema has the type it is written for."""
    values = listed_values(schema)
    if "type" in schema:
        types = as_types(schema["type"]) or []
        if not types or not all(name in TYPES for name in types):
            state.fail(pointer, "'type' must be one of the seven types, or a list of them")
            return []
    elif values is not None:
        types = [name for name in TYPES if name != "number" or any(isinstance(value, float) for value in values)]
    else:
        types = [name for name, words in _SHOWN_BY.items() if any(word in schema for word in words)][:1]
        if not types:
            state.fail(pointer, "any value is valid here, and strict mode does not support such a schema")
    if values is not None:
        types = [name for name in types if any(has_type(value, name) for value in values)]
        if not types:
            state.fail(pointer, "no value is valid here: no listed value has the type")
    return [name for name in dict.fromkeys(types) if name != "integer" or "number" not in types]


def listed_values(schema: JsonDict) -> list[Any] | None:
    """The values of ``enum`` and ``const``, each once; None if the schema has neither."""
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if not isinstance(values, list):
        return None
    if "const" in schema:
        values = [value for value in values if same_json(value, schema["const"])]
    distinct: dict[tuple[type, str], Any] = {}
    for value in values:
        shown = float(value) if has_type(value, "number") and abs(value) < 2**53 else value
        distinct.setdefault((type(shown), repr(shown)), value)
    return list(distinct.values())


# -- texts, numbers, booleans and null -----------------------------------------------------------------------------------


def convert_scalar(state: TransformState, schema: JsonDict, pointer: str, type: str) -> Converted:
    """A text, a number, a boolean or null."""
    text = DescriptionText(state, schema, pointer)
    strict: JsonDict = {"type": type}
    values = listed_values(schema)
    if values is not None:
        beside = {word: limit for word, limit in schema.items() if word not in ("enum", "const")}
        fitting = [value for value in values if has_type(value, type) and state.fits(value, beside)]
        if not fitting:
            return state.fail(
                pointer, "no value is valid here: the listed values do not satisfy the keywords next to them"
            )
        strict |= {"const": fitting[0]} if "const" in schema else {"enum": fitting}
    taken = [
        word for word in state.rules.keywords[type] if word in schema and state.rules.takes(type, word, schema[word])
    ]
    strict |= {word: schema[word] for word in taken}
    served = [*rules.ANYWHERE, *taken]
    if values is not None:
        served += _LENGTHS  # they hold for all that is listed
    elif type == "string" and "format" not in taken and state.rules.lengths_as_patterns:
        lengths = _usable_lengths(schema)
        if lengths:
            strict["pattern"] = _length_pattern(schema, lengths)
        for word, limit in lengths.items():
            text.say(f"{word}: {limit}", word, "reshaped", "written as a pattern, and in the description")
            served.append(word)
    text.move_all_but(tuple(served))
    return Converted(text.add_to(strict))


def _usable_lengths(schema: JsonDict) -> dict[str, int]:
    """How long a text may be, as far as a pattern can say it.

    OpenAI has been seen to take the keywords themselves, but does not document them, and compatible servers refuse them.
    """
    if not _REPEATED.fullmatch(str(schema.get("pattern", _ANY_TEXT))):
        return {}
    given: dict[str, Any] = {word: schema.get(word) for word in _LENGTHS}
    return {word: int(limit) for word, limit in given.items() if _is_length(limit)}


def _is_length(limit: Any) -> bool:
    return has_type(limit, "integer") and 0 <= limit <= MAX_LENGTH


def _length_pattern(schema: JsonDict, lengths: dict[str, int]) -> str:
    repeated = _REPEATED.fullmatch(schema.get("pattern", _ANY_TEXT))
    assert repeated is not None
    fewest = max(lengths.get("minLength", 0), 1 if repeated["how"] == "+" else 0)
    return f"^{repeated['what']}{{{fewest},{lengths.get('maxLength', '')}}}$"


def nullable(strict: JsonDict) -> JsonDict:
    """The same form, or null.

    >>> nullable({"type": "string", "enum": ["a"]})
    {'type': ['string', 'null'], 'enum': ['a', None]}
    """
    if "anyOf" in strict:
        takes_null = any(branch.get("type") in ("null", ["null"]) for branch in strict["anyOf"])
        return strict if takes_null else {**strict, "anyOf": [*strict["anyOf"], {"type": "null"}]}
    type = strict.get("type")
    if "$ref" in strict or type in ("object", "array"):
        spoken: JsonDict = {word: strict[word] for word in rules.ANNOTATIONS if word in strict}
        bare = {word: value for word, value in strict.items() if word not in spoken}
        return {"anyOf": [bare, {"type": "null"}], **spoken}
    if type == "null" or isinstance(type, list):
        return strict
    made: JsonDict = {**strict, "type": [type, "null"]}
    if "const" in made:
        made = {("enum" if word == "const" else word): value for word, value in made.items()}
        made["enum"] = [strict["const"]]
    if "enum" in made:
        made["enum"] = [*made["enum"], None]
    return made


# -- arrays; those with a schema for each place become objects -----------------------------------------------------------


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


# -- objects and maps ----------------------------------------------------------------------------------------------------


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


def is_map(schema: JsonDict) -> bool:
    """Whether properties may be given whose names the schema does not know, but whose values it describes."""
    extra = schema.get("additionalProperties")
    return (isinstance(extra, dict) and has_assertions(extra)) or bool(schema.get("patternProperties"))


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


# -- one of several forms ------------------------------------------------------------------------------------------------


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
