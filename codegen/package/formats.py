"""The ``format`` of a schema: a word in the docstring, and with ``formats = "rich"`` a type of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from toolkit.codegen.schema.document import Document
from toolkit.jsonschema.keywords import Schema

RICH: Final = {
    "date-time": "WireDateTime",
    "date": "WireDate",
    "time": "WireTime",
    "uuid": "WireUUID",
    "uri": "WireUrl",
}
"""The formats that have a lossless Python type, and its name in ``toolkit.generated_support``."""

RICH_TYPE: Final = "richType"
"""Marks a flat node with the name of its type."""

TEXT_TOO: Final = "textToo"
"""False in a marked node where a caller cannot give the text instead."""

_INSIDE: Final = ("items", "additionalProperties")
_LIMITS: Final = ("maxLength", "minLength", "pattern")

Lookup = Callable[[str], Schema | None]


def with_rich_types(document: Document) -> Document:
    """The document, with every text of a known format marked.

    Limits and defaults are about the text, so a text that has any stays a text.
    """
    return replace(
        document,
        root=_mark(document.root),
        objects={name: _mark(node) for name, node in document.objects.items()},
        aliases={name: _mark(node) for name, node in document.aliases.items()},
    )


def _mark(node: Any) -> Any:
    if not isinstance(node, dict) or node.get("default") is not None:
        return node
    marked = {word: _mark(value) if word in _INSIDE else value for word, value in node.items()}
    if "anyOf" in node:
        marked["anyOf"] = [_mark(branch) for branch in node["anyOf"]]
    if "properties" in node:
        marked["properties"] = {name: _mark(value) for name, value in node["properties"].items()}
    if node.get("type") == "string" and node.get("format") in RICH and not any(word in node for word in _LIMITS):
        marked[RICH_TYPE] = RICH[node["format"]]
    return marked


def rich_types_in(node: Any) -> Iterator[str]:
    """The names of all rich types that a marked node uses."""
    if isinstance(node, dict):
        if RICH_TYPE in node and node.get(TEXT_TOO, True):
            yield node[RICH_TYPE]
        for part in (node.get(word) for word in _INSIDE):
            yield from rich_types_in(part)
        for part in (*node.get("anyOf", ()), *node.get("properties", {}).values()):
            yield from rich_types_in(part)


def separate_forms(node: Any) -> list[Any]:
    """What a list or map may hold: rich values or texts, each as a node of its own.

    ``list[UUID] | list[str]`` accepts a caller's ``list[UUID]``; ``list[UUID | str]`` does not.
    """
    if not any(rich_types_in(node)):
        return [node]
    return [_map_marks(node, lambda leaf: {**leaf, TEXT_TOO: False}), _map_marks(node, _without_mark)]


def _without_mark(leaf: Schema) -> Schema:
    return {word: value for word, value in leaf.items() if word != RICH_TYPE}


def _map_marks(node: Any, change: Callable[[Schema], Schema]) -> Any:
    if not isinstance(node, dict):
        return node
    if RICH_TYPE in node:
        return change(node)
    changed = {word: _map_marks(value, change) if word in _INSIDE else value for word, value in node.items()}
    return {**changed, "anyOf": [_map_marks(part, change) for part in node["anyOf"]]} if "anyOf" in node else changed


def described(node: Schema, lookup: Lookup) -> str:
    """The description of a field with its format, for a docstring.

    >>> described({"type": "string", "format": "date", "description": "The first day"}, lambda ref: None)
    'The first day. Format: date.'
    >>> described({"type": "array", "items": {"type": "string", "format": "uuid"}}, lambda ref: None)
    'Format of each item: uuid.'
    """
    text = str(node.get("description", ""))
    notes = []
    for words, word in (("Format", None), ("Format of each item", "items"), ("Format of each value", _INSIDE[1])):
        parts = [node] if word is None else [part.get(word) for part in (node, *node.get("anyOf", ()))]
        names = dict.fromkeys(name for part in parts for name in _formats(part, lookup))
        notes += [f"{words}: {', '.join(names)}."] if names else []
    if not notes or not text.strip():
        return " ".join(notes) or text
    text = text.rstrip()
    if "\n" in text:
        return f"{text}\n\n{' '.join(notes)}"
    return " ".join([text if text.endswith((".", "!", "?", ":", ";", ")")) else f"{text}.", *notes])


def _formats(node: Any, lookup: Lookup) -> Iterator[str]:
    if not isinstance(node, dict):
        return
    if "$ref" in node:
        target = lookup(node["$ref"].rpartition("/")[2])
        node = target if target is not None and "$ref" not in target else {}
    if isinstance(node.get("format"), str):
        yield node["format"]
    for branch in node.get("anyOf", ()):
        yield from _formats(branch, lookup)
