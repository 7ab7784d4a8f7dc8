"""Gemini. Newer models take JSON Schema; for the others parameters are put into a part of OpenAPI."""

from __future__ import annotations

from typing import Final

from toolkit.adapters.gemini.parts import sent_name
from toolkit.adapters.gemini.schema import to_openapi
from toolkit.adapters.lint.remark import SCHEMA, Effect, Remark, shown
from toolkit.jsonschema.pointer import join_pointer
from toolkit.wire.definition import ToolDefinition

_WORDS: Final[dict[str, tuple[Effect, str]]] = {
    "moved": ("moved", "said in the description to models without JSON Schema"),
    "loosened": ("loosened", "said less exactly to models without JSON Schema"),
    "lost": ("lost", "not said to models without JSON Schema"),
}


def lint_gemini(definition: ToolDefinition) -> list[Remark]:
    remarks = []
    name = sent_name(definition.name)
    if name != definition.name:
        remarks.append(Remark("renamed", "/name", f"sent as {name!r}"))

    def tell(pointer: str, keyword: str, effect: str) -> None:
        word, what = _WORDS[effect]
        place = join_pointer(pointer, keyword) if keyword else pointer
        text = f"{shown(keyword)} is {what}" if keyword else f"what is inside a schema that holds itself is {what}"
        remarks.append(Remark(word, f"{SCHEMA}{place}", text))

    to_openapi(definition.parameters, tell)
    return remarks
