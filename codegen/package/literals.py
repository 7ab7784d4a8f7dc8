"""The static type of a flat schema node, as source text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.codegen.package.formats import RICH_TYPE, TEXT_TOO, separate_forms
from toolkit.codegen.package.render.literal import literal
from toolkit.codegen.schema.document import Document

_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


class TypeText:
    """Writes the types of one document; ``name`` maps names of ``typing`` and of classes to how they are spelled."""

    def __init__(self, document: Document, *, name: Callable[[str], str]) -> None:
        self.document = document
        self.name = name

    def render(self, node: dict[str, Any]) -> str:
        """The type of the values that ``node`` accepts.

        >>> plain = TypeText(Document("X", {}), name=str)
        >>> plain.render({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]})
        'list[str] | None'
        """
        if "$ref" in node:
            target = node["$ref"].rpartition("/")[2]
            alias = self.document.aliases.get(target)
            if alias is None or target in self.document.recursive:
                return self.name(target)
            return self.render(alias)
        if "enum" in node:
            return self._enum(node["enum"])
        if "anyOf" in node:
            parts = dict.fromkeys(part for branch in node["anyOf"] for part in [self.render(branch)])
            nulls = [part for part in parts if part == "None"]
            return " | ".join([part for part in parts if part != "None"] + nulls)
        if RICH_TYPE in node:
            return self.name(node[RICH_TYPE]) + (" | str" if node.get(TEXT_TOO, True) else "")
        kind = node.get("type")
        if kind in _SCALARS:
            return _SCALARS[kind]
        if kind == "array":
            forms = separate_forms(node.get("items", {}))
            return " | ".join(f"list[{self.render(form)}]" for form in forms)
        if kind == "object":
            forms = separate_forms(node.get("additionalProperties", True))
            return " | ".join(f"dict[str, {self._map_value(form)}]" for form in forms)
        return "None" if kind == "null" else self.name("Any")

    def _map_value(self, extra: Any) -> str:
        return self.name("Any") if isinstance(extra, bool) else self.render(extra)

    def _enum(self, values: list[Any]) -> str:
        words = [literal(value) for value in values if value is not None]
        parts = [f"{self.name('Literal')}[{', '.join(words)}]"] if words else []
        return " | ".join(parts + ["None"] * (None in values))
