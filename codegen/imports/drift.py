"""What changed between two lists of tool definitions, and whether committed code can live with it. Pure.

A change is *compatible* where everything committed code sends is still taken and everything it may get still fits its
types; *widening* where, besides, the tool offers more than the committed types know; *breaking* otherwise, and wherever
nothing else can be proven.

Inputs: taking more is widening, taking less or needing more is breaking. An object that names properties and says nothing of
others is meant to have those: a parameter added to it is widening, one that is gone is breaking.

Outputs are the other way round: what the committed types are told is a promise. Promising more (a property that is always
there now, a new property in an object that is open) is widening: every answer still fits the committed types, and only new
ones show what there is. Promising less, another type, a new member of an enum or a null is breaking, and so is a new property
of a *closed* object: the committed type refuses it, and with it the whole answer.

What a tool is called at its origin identifies it: a renamed one is gone, and another one is new.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from toolkit.codegen.imports.subset.prove import Gap, gaps
from toolkit.jsonschema.types import TYPES
from toolkit.jsonschema.values import json_key, same_json

ChangeKind: TypeAlias = Literal["compatible", "widening", "breaking"]
KINDS: Final[tuple[ChangeKind, ...]] = ("compatible", "widening", "breaking")

_MAX_SHOWN: Final = 80
_MAX_VALUES: Final = 8
_JUDGED: Final = ("name", "rename", "inputSchema", "outputSchema", "annotations", "permissions", "request")
# Keys that say how committed code reaches the tool or reads its answer.
_BINDING: Final = {"wrapsResult": "wraps its result", "function": "runs it"}


@dataclass(frozen=True, slots=True)
class Change:
    """One difference; ``pointer`` is a place in the tool's definition."""

    tool: str
    kind: ChangeKind
    pointer: str
    sentence: str


def changes(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> list[Change]:
    """Every change from the old definitions to the new ones, tool by tool in the old order, new tools last.

    >>> old = {"name": "find", "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}}}
    >>> new = {"name": "find", "inputSchema": {**old["inputSchema"], "required": ["q"]}}
    >>> changes([old], [new])
    [Change(tool='find', kind='breaking', pointer='/inputSchema/required', sentence="'q' is required now")]
    """
    before, after = ({str(tool["name"]): tool for tool in tools} for tools in (old, new))
    found: list[Change] = []
    for name, tool in before.items():
        if name in after:
            found += (Change(name, *rest) for rest in _tool_changes(tool, after[name]))
        else:
            found.append(Change(name, "breaking", "", "the tool is gone"))
    return found + [Change(name, "widening", "", "the tool is new") for name in after if name not in before]


_Told: TypeAlias = tuple[ChangeKind, str, str]


def _tool_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[_Told]:
    yield from _input_changes(_object(old["inputSchema"]), _object(new["inputSchema"]))
    yield from _output_changes(old.get("outputSchema"), new.get("outputSchema"))
    yield from _annotation_changes(old.get("annotations") or {}, new.get("annotations") or {})
    yield from _permission_changes(old.get("permissions"), new.get("permissions"))
    yield from _request_changes(old.get("request"), new.get("request"))
    for key in dict.fromkeys([*old, *new]):
        if key not in _JUDGED and not same_json(old.get(key), new.get(key)):
            kind: ChangeKind = "breaking" if key in _BINDING else "compatible"
            yield (
                kind,
                f"/{key}",
                f"what {_BINDING[key]} is another now" if key in _BINDING else f"{key!r} is another now",
            )


def _object(schema: dict[str, Any]) -> dict[str, Any]:
    return schema if "type" in schema else {"type": "object", **schema}


# -- schemas -----------------------------------------------------------------------------------------------------------


def _input_changes(old: dict[str, Any], new: dict[str, Any]) -> Iterator[_Told]:
    lost, gained = gaps(old, new, only_named=True), gaps(new, old, only_named=True)
    for gap in lost:
        yield "breaking", f"/inputSchema{gap.pointer}", _sentence(gap, gap.left, gap.right, _INPUT_LOST)
    told = {gap.pointer for gap in lost}
    for gap in gained:
        if gap.pointer not in told:
            yield "widening", f"/inputSchema{gap.pointer}", _sentence(gap, gap.right, gap.left, _INPUT_GAINED)
    if not lost and not gained and not same_json(old, new):
        yield "compatible", "/inputSchema", "it is written otherwise and takes the same"


def _output_changes(old: dict[str, Any] | None, new: dict[str, Any] | None) -> Iterator[_Told]:
    if old is None or new is None:
        if new is not None:
            yield "widening", "/outputSchema", "what it gives has a schema now"
        elif old is not None:
            yield "breaking", "/outputSchema", "what it gives has no schema any more"
        return
    lost, gained = gaps(new, old, only_named=False), gaps(old, new, only_named=False)
    for gap in lost:
        yield "breaking", f"/outputSchema{gap.pointer}", _sentence(gap, gap.right, gap.left, _OUTPUT_LOST)
    told = {gap.pointer for gap in lost}
    for gap in gained:
        if gap.pointer not in told:
            # A closed object that lost a property fits the old type, and yet gives less.
            kind: ChangeKind = "breaking" if gap.word == "properties" and gap.name is not None else "widening"
            yield kind, f"/outputSchema{gap.pointer}", _sentence(gap, gap.left, gap.right, _OUTPUT_GAINED)
    if not lost and not gained and not same_json(old, new):
        yield "compatible", "/outputSchema", "it is written otherwise and gives the same"


@dataclass(frozen=True, slots=True)
class _Words:
    """How one direction of a change is told."""

    required: str
    properties: str
    values: str
    """Of listed values that only one side has; ``others`` of those that only the other side has."""
    others: str
    unlisted: str
    """Where one side lists values and the other does not."""


_INPUT_LOST: Final = _Words(
    "is required now", "is no longer taken", "no longer taken", "taken now as well", "only {} taken now"
)
_INPUT_GAINED: Final = _Words(
    "is no longer required",
    "is new",
    "taken now as well",
    "no longer taken",
    "any value that fits the rest of the schema is taken now, not only {}",
)
_OUTPUT_LOST: Final = _Words(
    "may be missing now",
    "is new, and the committed type is closed",
    "given now as well",
    "no longer given",
    "any value that fits the rest of the schema may be given now, not only {}",
)
_OUTPUT_GAINED: Final = _Words(
    "is always there now", "is no longer given", "no longer given", "given now as well", "only {} given now"
)


def _sentence(gap: Gap, old: Any, new: Any, words: _Words) -> str:
    if gap.word == "schema":
        return "the schema changed in a way that cannot be compared"
    if gap.word == "required":
        return f"{gap.name!r} {words.required}"
    if gap.word == "properties":
        return f"{gap.name!r} {words.properties}" if gap.name is not None else "it is another now"
    if gap.word == "enum":
        return _values_sentence(gap.left, gap.right, words)
    if gap.word == "type":
        return f"the type was {_types(old)}, is {_types(new)}"
    return f"{gap.word!r} was {_shown(old)}, is {_shown(new)}"


def _values_sentence(left: list[Any] | None, right: list[Any], words: _Words) -> str:
    if left is None:
        return words.unlisted.format(_values(right))
    more, less = _missing(left, right), _missing(right, left)
    told = [f"{_values(values)} {word}" for values, word in ((more, words.values), (less, words.others)) if values]
    return "; ".join(told) if more else "the values are listed otherwise"


def _missing(values: list[Any], others: list[Any]) -> list[Any]:
    known = {json_key(value) for value in others}
    return [value for value in values if json_key(value) not in known]


def _values(values: list[Any]) -> str:
    more = f" and {len(values) - _MAX_VALUES} more" if len(values) > _MAX_VALUES else ""
    return ", ".join(map(_shown_value, values[:_MAX_VALUES])) + more


def _shown_value(value: Any) -> str:
    return "null" if value is None else _shown(value)


def _types(words: Any) -> str:
    given = [words] if isinstance(words, str) else list(words)
    if set(given) >= set(TYPES):
        return "anything"
    return " or ".join(word for word in given if word != "integer" or "number" not in given)


def _shown(value: Any) -> str:
    if value is None:
        return "not there"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "..."


# -- the rest of a definition ------------------------------------------------------------------------------------------


def _annotation_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[_Told]:
    """A policy may rest on what a server says of its tools; MCP says what an absent hint means."""
    for hint, absent, safe in _HINTS:
        before, after = old.get(hint, absent), new.get(hint, absent)
        if before is safe and after is not safe:
            yield (
                "breaking",
                f"/annotations/{hint}",
                f"{hint!r} was {_shown(before)}, is {_shown(after)}: a policy may rest on it",
            )
        elif before != after:
            yield "compatible", f"/annotations/{hint}", f"{hint!r} was {_shown(before)}, is {_shown(after)}"
    known = {hint for hint, _, _ in _HINTS}
    for key in dict.fromkeys([*old, *new]):
        if key not in known and not same_json(old.get(key), new.get(key)):
            yield "compatible", f"/annotations/{key}", f"{key!r} is another now"


_HINTS: Final[tuple[tuple[str, bool, bool], ...]] = (
    ("readOnlyHint", False, True),
    ("destructiveHint", True, False),
    ("idempotentHint", False, True),
    ("openWorldHint", True, False),
)
"""Each hint, what its absence means, and the value that a policy would be looser for."""


def _permission_changes(old: Any, new: Any) -> Iterator[_Told]:
    for word in ("required", "optional"):
        before, after = _permissions(old, word), _permissions(new, word)
        for name in sorted(after - before):
            yield "breaking", "/permissions", f"it asks for the permission {name!r} ({word}) now"
        for name in sorted(before - after):
            yield "compatible", "/permissions", f"it no longer asks for the permission {name!r} ({word})"


def _permissions(value: Any, word: str) -> set[str]:
    parts = value if isinstance(value, dict) else {"required": value or []}
    return set(parts.get(word, ()))


def _request_changes(old: Any, new: Any) -> Iterator[_Told]:
    """How an operation is called. Parts that came to a list matter to who sends them: the input tells of those."""
    before, after = old or {}, new or {}
    for key in dict.fromkeys([*before, *after]):
        one, other = before.get(key), after.get(key)
        if same_json(one, other):
            continue
        kept = isinstance(one, list) and isinstance(other, list) and {*map(json_key, one)} <= {*map(json_key, other)}
        if not kept:
            yield "breaking", f"/request/{key}", "the operation is called otherwise now"
