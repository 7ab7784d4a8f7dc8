"""What changed between two lists of tool definitions, and whether committed code still works. Nothing is read or written.

A change is *compatible* if the tool still accepts everything that committed code sends, and everything it returns still fits
the committed types; *widening* if the tool also offers more than the committed types know; *breaking* otherwise, and
whenever nothing else can be proven.

Inputs: accepting more is widening, accepting less or requiring more is breaking. An object that names some properties is
meant to have only those: a new parameter is widening, a removed one is breaking.

Outputs are the reverse: the schema is a promise to the committed types. Promising more (a property that is now always
present, a new property of an open object) is widening: every result still fits the committed types. Promising less, another
type, a new enum value or null is breaking, and so is a new property of a *closed* object: the committed type refuses it.

A tool is identified by its name at the origin: a renamed tool counts as one removed and one new tool.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from toolkit.codegen.imports.subset import Gap, gaps
from toolkit.schema.accepts import json_key, same_json
from toolkit.schema.keywords import TYPES

ChangeKind: TypeAlias = Literal["compatible", "widening", "breaking"]
CHANGE_KINDS: Final[tuple[ChangeKind, ...]] = ("compatible", "widening", "breaking")

_MAX_SHOWN: Final = 80
_MAX_VALUES: Final = 8
_JUDGED: Final = ("name", "rename", "inputSchema", "outputSchema", "annotations", "permissions", "request")
# Keys that decide how committed code calls the tool or reads its result, and how a change of each is described.
_BINDING: Final = {
    "wrapsResult": "the server changed whether it wraps the result",
    "function": "another function runs the tool",
}


@dataclass(frozen=True, slots=True)
class DefinitionChange:
    """One difference; ``pointer`` is a place in the tool's definition."""

    tool: str
    kind: ChangeKind
    pointer: str
    sentence: str


def find_changes(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> list[DefinitionChange]:
    """Every change from the old definitions to the new ones, tool by tool in the old order, new tools last.

    >>> old = {"name": "find", "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}}}
    >>> new = {"name": "find", "inputSchema": {**old["inputSchema"], "required": ["q"]}}
    >>> find_changes([old], [new])
    [DefinitionChange(tool='find', kind='breaking', pointer='/inputSchema/required', sentence="'q' is required now")]
    """
    before, after = ({str(tool["name"]): tool for tool in tools} for tools in (old, new))
    found: list[DefinitionChange] = []
    for name, tool in before.items():
        if name in after:
            found += (DefinitionChange(name, *rest) for rest in _tool_changes(tool, after[name]))
        else:
            found.append(DefinitionChange(name, "breaking", "", "the tool was removed"))
    return found + [
        DefinitionChange(name, "widening", "", "the tool was added") for name in after if name not in before
    ]


_Difference: TypeAlias = tuple[ChangeKind, str, str]


def _tool_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[_Difference]:
    yield from _input_changes(_object(old["inputSchema"]), _object(new["inputSchema"]))
    yield from _output_changes(old.get("outputSchema"), new.get("outputSchema"))
    yield from _annotation_changes(old.get("annotations") or {}, new.get("annotations") or {})
    yield from _permission_changes(old.get("permissions"), new.get("permissions"))
    yield from _request_changes(old.get("request"), new.get("request"))
    for key in dict.fromkeys([*old, *new]):
        if key not in _JUDGED and not same_json(old.get(key), new.get(key)):
            kind: ChangeKind = "breaking" if key in _BINDING else "compatible"
            yield kind, f"/{key}", _BINDING.get(key, f"{key!r} changed")


def _object(schema: dict[str, Any]) -> dict[str, Any]:
    return schema if "type" in schema else {"type": "object", **schema}


# -- schemas -----------------------------------------------------------------------------------------------------------


def _input_changes(old: dict[str, Any], new: dict[str, Any]) -> Iterator[_Difference]:
    lost, gained = gaps(old, new, only_named=True), gaps(new, old, only_named=True)
    for gap in lost:
        yield "breaking", f"/inputSchema{gap.pointer}", _sentence(gap, gap.left, gap.right, _INPUT_LOST)
    reported = {gap.pointer for gap in lost}
    for gap in gained:
        if gap.pointer not in reported:
            yield "widening", f"/inputSchema{gap.pointer}", _sentence(gap, gap.right, gap.left, _INPUT_GAINED)
    if not lost and not gained and not same_json(old, new):
        yield "compatible", "/inputSchema", "it is written differently and accepts the same values"


def _output_changes(old: dict[str, Any] | None, new: dict[str, Any] | None) -> Iterator[_Difference]:
    if old is None or new is None:
        if new is not None:
            yield "widening", "/outputSchema", "the output has a schema now"
        elif old is not None:
            yield "breaking", "/outputSchema", "the output no longer has a schema"
        return
    lost, gained = gaps(new, old, only_named=False), gaps(old, new, only_named=False)
    for gap in lost:
        yield "breaking", f"/outputSchema{gap.pointer}", _sentence(gap, gap.right, gap.left, _OUTPUT_LOST)
    reported = {gap.pointer for gap in lost}
    for gap in gained:
        if gap.pointer not in reported:
            # A closed object without one of its properties still fits the old type, but returns less.
            kind: ChangeKind = "breaking" if gap.word == "properties" and gap.name is not None else "widening"
            yield kind, f"/outputSchema{gap.pointer}", _sentence(gap, gap.left, gap.right, _OUTPUT_GAINED)
    if not lost and not gained and not same_json(old, new):
        yield "compatible", "/outputSchema", "it is written differently and allows the same values"


@dataclass(frozen=True, slots=True)
class _Phrases:
    """The phrases for one direction of a change."""

    required: str
    properties: str
    values: str
    """For enum values that only one side has; ``others`` for those that only the other side has."""
    others: str
    unlisted: str
    """For an enum on one side and none on the other."""


_INPUT_LOST: Final = _Phrases(
    "is required now", "is no longer accepted", "no longer accepted", "now also accepted", "only {} accepted now"
)
_INPUT_GAINED: Final = _Phrases(
    "is no longer required",
    "is new",
    "now also accepted",
    "no longer accepted",
    "any value that fits the rest of the schema is accepted now, not only {}",
)
_OUTPUT_LOST: Final = _Phrases(
    "may be missing now",
    "is new, and the committed type is closed",
    "now also returned",
    "no longer returned",
    "any value that fits the rest of the schema may be returned now, not only {}",
)
_OUTPUT_GAINED: Final = _Phrases(
    "is always present now", "is no longer returned", "no longer returned", "now also returned", "only {} returned now"
)


def _sentence(gap: Gap, old: Any, new: Any, words: _Phrases) -> str:
    if gap.word == "schema":
        return "the schema changed in a way that cannot be compared"
    if gap.word == "required":
        return f"{gap.name!r} {words.required}"
    if gap.word == "properties":
        return f"{gap.name!r} {words.properties}" if gap.name is not None else "it changed"
    if gap.word == "enum":
        return _values_sentence(gap.left, gap.right, words)
    if gap.word == "type":
        return f"the type was {_types(old)}, is now {_types(new)}"
    return f"{gap.word!r} was {_show(old)}, is now {_show(new)}"


def _values_sentence(left: list[Any] | None, right: list[Any], words: _Phrases) -> str:
    if left is None:
        return words.unlisted.format(_values(right))
    more, less = _missing(left, right), _missing(right, left)
    parts = [f"{_values(values)} {word}" for values, word in ((more, words.values), (less, words.others)) if values]
    return "; ".join(parts) if more else "the values are listed differently"


def _missing(values: list[Any], others: list[Any]) -> list[Any]:
    known = {json_key(value) for value in others}
    return [value for value in values if json_key(value) not in known]


def _values(values: list[Any]) -> str:
    more = f" and {len(values) - _MAX_VALUES} more" if len(values) > _MAX_VALUES else ""
    return ", ".join(map(_show_value, values[:_MAX_VALUES])) + more


def _show_value(value: Any) -> str:
    return "null" if value is None else _show(value)


def _types(words: Any) -> str:
    given = [words] if isinstance(words, str) else list(words)
    if set(given) >= set(TYPES):
        return "anything"
    return " or ".join(word for word in given if word != "integer" or "number" not in given)


def _show(value: Any) -> str:
    if value is None:
        return "absent"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "..."


# -- the rest of a definition ------------------------------------------------------------------------------------------


def _annotation_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[_Difference]:
    """A policy may rely on the hints of a server; MCP defines what an absent hint means."""
    for hint, absent, safe in _HINTS:
        before, after = old.get(hint, absent), new.get(hint, absent)
        if before is safe and after is not safe:
            yield (
                "breaking",
                f"/annotations/{hint}",
                f"{hint!r} was {_show(before)}, is now {_show(after)}: a policy may rely on it",
            )
        elif before != after:
            yield "compatible", f"/annotations/{hint}", f"{hint!r} was {_show(before)}, is now {_show(after)}"
    known = {hint for hint, _, _ in _HINTS}
    for key in dict.fromkeys([*old, *new]):
        if key not in known and not same_json(old.get(key), new.get(key)):
            yield "compatible", f"/annotations/{key}", f"{key!r} changed"


_HINTS: Final[tuple[tuple[str, bool, bool], ...]] = (
    ("readOnlyHint", False, True),
    ("destructiveHint", True, False),
    ("idempotentHint", False, True),
    ("openWorldHint", True, False),
)
"""Each hint, what its absence means, and the value for which a policy may be more permissive."""


def _permission_changes(old: Any, new: Any) -> Iterator[_Difference]:
    for word in ("required", "optional"):
        before, after = _permissions(old, word), _permissions(new, word)
        for name in sorted(after - before):
            yield "breaking", "/permissions", f"it now needs the permission {name!r} ({word})"
        for name in sorted(before - after):
            yield "compatible", "/permissions", f"it no longer needs the permission {name!r} ({word})"


def _permissions(value: Any, word: str) -> set[str]:
    parts = value if isinstance(value, dict) else {"required": value or []}
    return set(parts.get(word, ()))


def _request_changes(old: Any, new: Any) -> Iterator[_Difference]:
    """How an operation is called. New entries of a list do not count here: the input schema shows them."""
    before, after = old or {}, new or {}
    for key in dict.fromkeys([*before, *after]):
        one, other = before.get(key), after.get(key)
        if same_json(one, other):
            continue
        kept = isinstance(one, list) and isinstance(other, list) and {*map(json_key, one)} <= {*map(json_key, other)}
        if not kept:
            yield "breaking", f"/request/{key}", "the operation is called in another way now"
