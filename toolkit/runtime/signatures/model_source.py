"""The types in the source text of a generated model module. Nothing is imported, so no model is built."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from toolkit.runtime.signatures.plain_types import names_in, parse_type, plain_text
from toolkit.runtime.signatures.type_lines import alias_line, class_line

CONTENT_OUTPUT: Final = "ContentOutput"
"""The base of outputs that have no schema. Signatures name it instead of the subclass, which adds nothing."""


class TypeLine(NamedTuple):
    """A class or an alias as one line of Python."""

    text: str
    mentions: tuple[str, ...]
    """The names in its types, in order."""


class ModelSource:
    """The classes and aliases of one module, by name."""

    def __init__(self, text: str) -> None:
        self._statements: Final = dict(_definitions(ast.parse(text).body))
        self._lines: Final[dict[str, TypeLine]] = {}

    def has_content_output(self, name: str) -> bool:
        """Whether a class is an output without a schema."""
        node = self._statements.get(name)
        return isinstance(node, ast.ClassDef) and any(ast.unparse(base) == CONTENT_OUTPUT for base in node.bases)

    def reachable(self, names: Iterable[str]) -> list[str]:
        """The lines of the types with these names, and of those that they mention, each after the first mention of it."""
        found: dict[str, str] = {}
        pending = list(reversed(list(names)))
        while pending:
            name = pending.pop()
            if name in self._statements and name not in found:
                line = self._line(name)
                found[name] = line.text
                pending += reversed(line.mentions)
        return list(found.values())

    def _line(self, name: str) -> TypeLine:
        if name not in self._lines:
            node = self._statements[name]
            self._lines[name] = _class_line(node) if isinstance(node, ast.ClassDef) else _alias_line(name, node)
        return self._lines[name]


def _definitions(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """The statements that define a name; of those that are written twice, what checkers see."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node
        elif isinstance(node, ast.If):
            yield from _definitions(node.body)  # `if TYPE_CHECKING:`


def _class_line(node: ast.ClassDef) -> TypeLine:
    fields = {
        member.target.id: plain_text(member.annotation)
        for member in node.body
        if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name) and member.target.id[:2] != "__"
    }
    base = node.bases[0] if node.bases else None
    if isinstance(base, ast.Subscript):  # ToolRootModel[...]
        fields = {"root": plain_text(base.slice)}
    is_dict = isinstance(base, ast.Name) and base.id == "TypedDict"
    return TypeLine(class_line(node.name, fields, is_dict=is_dict), _mentions(fields.values()))


def _alias_line(name: str, node: ast.stmt) -> TypeLine:
    """An alias, or a TypedDict whose keys are not all names."""
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    if not isinstance(value, ast.Call):
        assert value is not None
        text = plain_text(value)
        return TypeLine(alias_line(name, text), _mentions([text]))
    keys = value.args[1]
    assert isinstance(keys, ast.Dict)
    fields = {
        ast.literal_eval(key): plain_text(kind)
        for key, kind in zip(keys.keys, keys.values, strict=True)
        if key is not None
    }
    return TypeLine(class_line(name, fields, is_dict=True), _mentions(fields.values()))


def _mentions(types: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for text in types for name in names_in(parse_type(text)))
