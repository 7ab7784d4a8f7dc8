"""Annotations of generated code as plain types: what a value is, without limits, patterns and marks."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Final

_MEANING_FIRST: Final = frozenset({"Annotated", "DeclaredBySome"})
"""``Annotated[int, ...]`` -> ``int``"""
_OR_NONE: Final = frozenset({"Omissible", "Optional"})
_RICH: Final = {
    "WireDate": "date",
    "WireDateTime": "datetime",
    "WireTime": "time",
    "WireUUID": "UUID",
    "WireUrl": "str",
}


def _as_it_is(name: str) -> str:
    return name


def parse_type(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def plain_text(annotation: ast.expr, spell: Callable[[str], str] = _as_it_is) -> str:
    """A type as text. ``spell`` says how a name is written.

    >>> plain_text(parse_type("list[Annotated[Omissible[str], Field(min_length=1)]]"))
    'list[str | None]'
    """
    return " | ".join(dict.fromkeys(text for part in _branches(annotation) for text in _texts(part, spell)))


def _texts(node: ast.expr, spell: Callable[[str], str]) -> Iterator[str]:
    """The branches of a type that has no ``|`` of its own."""
    if isinstance(node, ast.Name):
        yield spell(_RICH.get(node.id, node.id))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield plain_text(parse_type(node.value), spell)
    elif not isinstance(node, ast.Subscript):
        yield ast.unparse(node)
    else:
        yield from _subscript_texts(ast.unparse(node.value), node.slice, spell)


def _subscript_texts(name: str, inside: ast.expr, spell: Callable[[str], str]) -> Iterator[str]:
    parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
    if name == "Literal":
        yield f"{spell(name)}[{', '.join(map(ast.unparse, parts))}]"
    elif name in _MEANING_FIRST:
        yield plain_text(parts[0], spell)
    elif name in _OR_NONE or name == "Union":
        yield from (plain_text(part, spell) for part in parts)
        if name != "Union":
            yield "None"
    else:
        yield f"{spell(name)}[{', '.join(plain_text(part, spell) for part in parts)}]"


def _branches(node: ast.expr) -> list[ast.expr]:
    """What stands between the ``|`` of a type. A union of hundreds of types is that deep, so this is a loop."""
    found: list[ast.expr] = []
    while isinstance(node, ast.BinOp):
        found.append(node.right)
        node = node.left
    return [node, *reversed(found)]


def names_in(node: ast.expr) -> Iterator[str]:
    """The names that a plain type mentions, in order."""
    for part in _branches(node):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Subscript) and ast.unparse(part.value) != "Literal":
            yield from names_in(part.value)
            for inner in part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]:
                yield from names_in(inner)
