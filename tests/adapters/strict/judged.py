"""The judge of decoded answers: jsonschema, by the tool's own schema; and whether the receipt told what it finds.

And a second judge of Anthropic's subset, which shares no code with the checker: the word list of Anthropic's own SDK.
"""

from __future__ import annotations

from typing import Any

from anthropic.lib._parse._transform import SupportedStringFormats
from jsonschema import Draft202012Validator, ValidationError

from toolkit.adapters.strict import StrictReceipt


def untold(receipt: StrictReceipt, schema: dict[str, Any], value: Any) -> list[str]:
    """What is wrong with a decoded answer although the receipt does not say that the provider no longer enforces it."""
    told = {(note.pointer, note.keyword) for note in receipt.notes if note.effect in ("moved", "loosened")}
    errors = Draft202012Validator(schema).iter_errors(value)
    return [f"{_places(schema, error)}: {error.message[:200]}" for error in errors if not _is_told(error, schema, told)]


def _is_told(error: ValidationError, schema: dict[str, Any], told: set[tuple[str, str]]) -> bool:
    pointers, keyword = _places(schema, error)
    if any(word == keyword and _related(pointer, place) for place, word in told for pointer in pointers):
        return True
    branches: dict[Any, list[ValidationError]] = {}
    for inner in error.context or ():
        if not inner.relative_schema_path:  # how jsonschema reports the branch `false`, which no answer can satisfy
            continue
        branches.setdefault(inner.relative_schema_path[0], []).append(inner)
    return any(all(_is_told(inner, schema, told) for inner in branch) for branch in branches.values())


def _related(one: str, other: str) -> bool:
    """Whether two places are the same, or one is inside the other: what was merged is noted where it was merged."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def _places(schema: dict[str, Any], error: ValidationError) -> tuple[list[str], str]:
    """The pointers that lead to the schema with the keyword, one before each reference and one at the end; and the keyword."""
    *path, keyword = error.absolute_schema_path
    pointers = [""]
    node: Any = schema

    def follow(key: object) -> None:
        nonlocal node
        while isinstance(node, dict) and key not in node and "$ref" in node:
            pointers.append(node["$ref"].removeprefix("#"))
            node = followed(schema, pointers[-1])

    for key in path:
        follow(key)
        pointers[-1] += f"/{str(key).replace('~', '~0').replace('/', '~1')}"
        node = node[key]
    follow(keyword)
    return pointers, str(keyword)


# What the SDK's transform keeps in place; patterns are documented, but the SDK moves them into the description.
_KEPT_BY_THE_SDK = {"type", "enum", "const", "anyOf", "$ref", "$defs", "properties", "required", "additionalProperties", "items", "minItems", "format", "title", "description"}  # fmt: skip


def outside_anthropics_subset(schema: Any, where: str = "") -> list[str]:
    """What in a schema Anthropic documents as unsupported."""
    words = set(schema) - _KEPT_BY_THE_SDK - {"pattern"}
    found = [f"{where}: {word}" for word in sorted(words)]
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        found.append(f"{where}: an open object")
    if schema.get("minItems", 0) not in (0, 1) or schema.get("format", "uri") not in SupportedStringFormats:
        found.append(f"{where}: minItems or format")
    if any(isinstance(value, dict | list) for value in schema.get("enum", [])):
        found.append(f"{where}: an enum of objects")
    parts = [
        *schema.get("properties", {}).items(),
        *enumerate(schema.get("anyOf", [])),
        *schema.get("$defs", {}).items(),
    ]
    for name, part in [*parts, *([("items", schema["items"])] if "items" in schema else [])]:
        found += outside_anthropics_subset(part, f"{where}/{name}")
    return found


def followed(schema: Any, pointer: str) -> Any:
    """What a pointer leads to; fails if it refers to nothing."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        schema = schema[int(key)] if isinstance(schema, list) else schema[key]
    return schema
