"""One thing a provider does to a tool's definition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.pointer import below

Effect: TypeAlias = Literal["refused", "renamed", "not strict", "moved", "lost", "reshaped", "loosened"]
"""``refused``: a request with it fails. ``renamed``: another name is sent, which the toolkit knows again. ``not strict``:
strict mode cannot carry it, so it is sent without. ``moved``: said in the description alone. ``lost``: not said at all.
``reshaped``: asked for in another form, and turned back. ``loosened``: more passes than the schema allows, until the tool
itself checks."""

SCHEMA: Final = "/inputSchema"
_NAMED: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTED: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE: Final = ("items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames")


class Remark(NamedTuple):
    """What becomes of one place of a definition; ``pointer`` leads into the tool as its spec has it."""

    effect: Effect
    pointer: str
    message: str


def shown(word: str) -> str:
    """A keyword or a name inside a message: quoted, on one line, of bounded length."""
    return repr(word if len(word) <= 80 else f"{word[:80]}...")


def schemas(schema: Any) -> Iterator[tuple[str, JsonDict]]:
    """Every schema inside one, itself first, each with its pointer."""
    pending: list[tuple[str, Any]] = [("", schema)]
    while pending:
        pointer, node = pending.pop()
        if not isinstance(node, dict):
            continue
        yield pointer, node
        inner = [
            (below(below(pointer, word), key), one)
            for word in (*_NAMED, *_LISTED, "items")
            for key, one in _members(node.get(word), word in _NAMED)
        ]
        inner += [(below(pointer, word), node[word]) for word in _SINGLE if word in node]
        pending += reversed(inner)


def _members(group: Any, is_named: bool) -> Iterable[tuple[str | int, Any]]:
    if is_named:
        return group.items() if isinstance(group, dict) else ()
    return enumerate(group) if isinstance(group, list) else ()
