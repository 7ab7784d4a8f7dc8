"""Annotations of generated code as plain types: what a value is, without limits, patterns and marks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
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


def plain_type(annotation: ast.expr) -> ast.expr:
    """
    >>> ast.unparse(plain_type(ast.parse("list[Annotated[Omissible[str], Field(min_length=1)]]", mode="eval").body))
    'list[str | None]'
    """
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return plain_type(parse_type(annotation.value))
    if isinstance(annotation, ast.Name):
        return ast.Name(_RICH.get(annotation.id, annotation.id))
    if isinstance(annotation, ast.BinOp):
        return union([plain_type(annotation.left), plain_type(annotation.right)])
    if not isinstance(annotation, ast.Subscript):
        return annotation
    name = annotation.value.id if isinstance(annotation.value, ast.Name) else ""
    inner = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
    if name == "Literal":
        return annotation
    if name in _MEANING_FIRST:
        return plain_type(inner[0])
    types = [plain_type(part) for part in inner]
    if name in _OR_NONE:
        return union([*types, ast.Constant(None)])
    if name == "Union":
        return union(types)
    return ast.Subscript(annotation.value, types[0] if len(types) == 1 else ast.Tuple(types))


def parse_type(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def union(types: list[ast.expr]) -> ast.expr:
    """The types with ``|`` between them, each once."""
    parts = {ast.unparse(part): part for each in types for part in _branches(each)}
    joined, *others = parts.values()
    for other in others:
        joined = ast.BinOp(joined, ast.BitOr(), other)
    return joined


def _branches(node: ast.expr) -> list[ast.expr]:
    """What stands between the ``|`` of a type. A union of a thousand types is that deep, so this is a loop."""
    found: list[ast.expr] = []
    while isinstance(node, ast.BinOp):
        found.append(node.right)
        node = node.left
    return [node, *reversed(found)]


def names_in(node: ast.AST) -> Iterator[str]:
    """The names that a type mentions, in order."""
    if isinstance(node, ast.Name):
        yield node.id
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "Literal":
        return
    for child in ast.iter_child_nodes(node):
        yield from names_in(child)
