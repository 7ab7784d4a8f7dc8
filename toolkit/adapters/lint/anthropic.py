"""Anthropic, which takes JSON Schema of draft 2020-12 with a few exceptions, and less of it in strict mode."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from toolkit.adapters.anthropic.encode import encode_tools as encode_for_anthropic
from toolkit.adapters.lint.remark import SCHEMA, Remark
from toolkit.adapters.lint.strict import strict_remarks
from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.strict import ANTHROPIC, to_strict
from toolkit.jsonschema.pointer import join_pointer
from toolkit.jsonschema.walk import subschemas
from toolkit.wire.definition import ToolDefinition

_KEY: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_NOT_AT_THE_ROOT: Final = ("anyOf", "oneOf", "allOf")


def lint_anthropic(definition: ToolDefinition) -> list[Remark]:
    [sent] = encode_for_anthropic([definition])
    remarks = []
    if sent["name"] != definition.name:
        remarks.append(Remark("renamed", "/name", f"sent as {sent['name']!r}"))
    schema = sent["input_schema"]
    if schema["type"] != "object":
        remarks.append(Remark("refused", f"{SCHEMA}/type", "the root must be of type 'object'"))
    for word in _NOT_AT_THE_ROOT:
        if word in schema:
            remarks.append(Remark("refused", f"{SCHEMA}/{word}", f"the root must not have {word!r}"))
    names = schema.get("properties")
    for name in names if isinstance(names, dict) else ():
        if not _KEY.fullmatch(name):
            place = join_pointer(f"{SCHEMA}/properties", name)
            what = "parameter names must have 1 to 64 characters: letters, digits, '_', '.' and '-'"
            remarks.append(Remark("refused", place, what))
    for pointer, node in subschemas(schema):
        remarks += [
            Remark("refused", f"{SCHEMA}{join_pointer(pointer, word)}", why) for word, why in _not_of_2020(node)
        ]
    return remarks + strict_remarks(to_strict(definition.parameters, ANTHROPIC))


def _not_of_2020(node: JsonDict) -> Iterator[tuple[str, str]]:
    """Keywords as older drafts write them, which make the schema invalid in draft 2020-12."""
    old: dict[str, Any] = {
        "items": list,
        "exclusiveMinimum": bool,
        "exclusiveMaximum": bool,
        "required": bool,
    }
    for word, kind in old.items():
        if isinstance(node.get(word), kind):
            yield word, f"{word!r} is written as in an older draft; draft 2020-12 is required"
