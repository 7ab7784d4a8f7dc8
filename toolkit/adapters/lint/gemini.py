"""Gemini. Newer models take JSON Schema; for the others parameters are rewritten in a subset of OpenAPI."""

from __future__ import annotations

from typing import Final

from toolkit.adapters.gemini.content import sent_name as name_for_gemini
from toolkit.adapters.gemini.schema import to_openapi
from toolkit.adapters.lint.remark import SCHEMA, Effect, Remark, quote
from toolkit.jsonschema.pointer import join_pointer
from toolkit.wire.definition import ToolDefinition

_EFFECTS: Final[dict[str, tuple[Effect, str]]] = {
    "moved": ("moved", "only in the description for models without JSON Schema"),
    "loosened": ("loosened", "less exact for models without JSON Schema"),
    "lost": ("lost", "not sent to models without JSON Schema"),
}


def lint_gemini(definition: ToolDefinition) -> list[Remark]:
    remarks = []
    name = name_for_gemini(definition.name)
    if name != definition.name:
        remarks.append(Remark("renamed", "/name", f"sent as {name!r}"))

    def report(pointer: str, keyword: str, effect: str) -> None:
        word, what = _EFFECTS[effect]
        place = join_pointer(pointer, keyword) if keyword else pointer
        text = f"{quote(keyword)} is {what}" if keyword else f"the inside of a schema that contains itself is {what}"
        remarks.append(Remark(word, f"{SCHEMA}{place}", text))

    to_openapi(definition.parameters, report)
    return remarks
