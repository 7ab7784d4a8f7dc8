"""OpenAI, with strict mode and without."""

from __future__ import annotations

from typing import Final

from toolkit.adapters.lint.remark import SCHEMA, Remark
from toolkit.adapters.lint.strict import strict_remarks
from toolkit.adapters.openai_chat.encode import sent_name as name_for_openai
from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.strict import to_strict
from toolkit.adapters.strict.rules import takes_pattern
from toolkit.jsonschema.pointer import join_pointer
from toolkit.jsonschema.walk import subschemas
from toolkit.wire.definition import ToolDefinition

MAX_DESCRIPTION: Final = 1_024
_NOT_AT_THE_ROOT: Final = ("anyOf", "oneOf", "allOf", "enum", "not")


def lint_openai(definition: ToolDefinition) -> list[Remark]:
    remarks = []
    name = name_for_openai(definition.name)
    if name != definition.name:
        remarks.append(Remark("renamed", "/name", f"sent as {name!r}"))
    if len(definition.description) > MAX_DESCRIPTION:
        much = f"{len(definition.description)} characters, and some models refuse more than {MAX_DESCRIPTION}"
        remarks.append(Remark("refused", "/description", f"the description has {much}"))
    receipt = to_strict(definition.parameters)
    remarks += strict_remarks(receipt)
    return remarks if receipt.is_strict else remarks + _without_strict(definition.parameters)


def _without_strict(schema: JsonDict) -> list[Remark]:
    """What is refused in a schema that is sent as it is."""
    remarks = [
        Remark("refused", f"{SCHEMA}/{word}", f"the root must not have {word!r}")
        for word in _NOT_AT_THE_ROOT
        if word in schema
    ]
    for pointer, node in subschemas(schema):
        if node.get("type") == "array" and "items" not in node:
            remarks.append(Remark("refused", f"{SCHEMA}{pointer}", "an array must have 'items'"))
        pattern = node.get("pattern")
        if isinstance(pattern, str) and not takes_pattern(pattern):
            what = "newer models refuse a pattern with lookaround or back-references"
            remarks.append(Remark("refused", f"{SCHEMA}{join_pointer(pointer, 'pattern')}", what))
    return remarks
