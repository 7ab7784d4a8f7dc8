"""Ollama. Its client copies parameters into its own types and drops what they have no field for."""

from __future__ import annotations

from typing import Any, Final

from toolkit.adapters.lint.remark import SCHEMA, Remark, quote
from toolkit.adapters.ollama.encode import encode_tools as encode_for_ollama
from toolkit.adapters.plain_json import JsonDict
from toolkit.jsonschema.pointer import join_pointer
from toolkit.wire.definition import ToolDefinition

ROOT_FIELDS: Final = frozenset({"type", "$defs", "items", "required", "properties"})
PROPERTY_FIELDS: Final = frozenset({"type", "items", "description", "enum"})
"""What the client's types have; below ``items`` and ``$defs`` everything is kept."""
# Words that say nothing about values.
_SILENT: Final = frozenset({"$schema", "$id", "$comment", "title"})


def lint_ollama(definition: ToolDefinition) -> list[Remark]:
    [sent] = encode_for_ollama([definition])
    remarks = []
    name = sent["function"]["name"]
    if name != definition.name:
        remarks.append(Remark("renamed", "/name", f"sent as {name!r}"))
    schema: JsonDict = sent["function"]["parameters"]
    if schema.get("type", "object") != "object":
        remarks.append(Remark("refused", f"{SCHEMA}/type", "the root must be of type 'object'"))
    remarks += _list_dropped(schema, SCHEMA, ROOT_FIELDS)
    names = schema.get("properties")
    for name, inner in names.items() if isinstance(names, dict) else ():
        place = join_pointer(f"{SCHEMA}/properties", name)
        if isinstance(inner, dict):
            remarks += _list_dropped(inner, place, PROPERTY_FIELDS)
        else:
            remarks.append(Remark("refused", place, "a property must be an object"))
    return remarks


def _list_dropped(schema: JsonDict, pointer: str, fields: frozenset[str]) -> list[Remark]:
    def is_said(word: str, value: Any) -> bool:
        # Objects count as closed anyway.
        return word not in _SILENT and not word.startswith("x-") and (word, value) != ("additionalProperties", False)

    return [
        Remark("lost", join_pointer(pointer, word), f"Ollama's client drops {quote(word)}")
        for word, value in schema.items()
        if word not in fields and is_said(word, value)
    ]
