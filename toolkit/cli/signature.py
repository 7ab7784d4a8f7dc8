"""A tool as Python code: its signature, and a call with values that its schema describes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from toolkit.schema.keywords import References, Schema

_WIDTH: Final = 88
_SAMPLES: Final[dict[str, Any]] = {
    "integer": 1, "number": 1.0, "boolean": True, "null": None, "object": {}, "array": [],
}  # fmt: skip
_RESOURCES: Final = {
    "read-path": "README.md", "write-path": "notes.md", "url": "https://example.org/", "shell": "ls", "argv": ["ls"],
}  # fmt: skip
_MAX_DEPTH: Final = 8


def python_signature(row: Mapping[str, Any]) -> str:
    """
    >>> python_signature({"attribute": "add", "prefix": "Add", "parameters": [{"name": "a", "type": "int", "default": "1"}]})
    'tk.tools.add(*, a: int = 1) -> AddOutput'
    """
    parameters = [_parameter(one) for one in row["parameters"]]
    parameters = ["*", *parameters] if parameters else []
    own = row.get("ownOutput")
    returns = own["type"] if own else f"{row['prefix']}Output"
    return _call(f"tk.tools.{row['attribute']}", parameters, f" -> {returns}")


def example_call(row: Mapping[str, Any]) -> str:
    """A call with the required arguments, in Python."""
    values = example_arguments(row)
    names = {one["wire"]: one["name"] for one in row["parameters"]}
    given = [f"{names[wire]}={value!r}" for wire, value in values.items() if wire in names]
    return _call(f"tk.tools.{row['attribute']}", given, "")


def example_arguments(row: Mapping[str, Any]) -> dict[str, Any]:
    """The required arguments with sample values."""
    found = _sample(row["inputSchema"], References(row["inputSchema"]), 0)
    return found if isinstance(found, dict) else {}


def _parameter(one: Mapping[str, Any]) -> str:
    if one.get("required"):
        return f"{one['name']}: {one['type']}"
    return f"{one['name']}: {one['type']} = {one['default'] if one['default'] is not None else '...'}"


def _call(function: str, arguments: list[str], end: str) -> str:
    line = f"{function}({', '.join(arguments)}){end}"
    if len(line) <= _WIDTH:
        return line
    return "\n".join([f"{function}(", *(f"    {argument}," for argument in arguments), f"){end}"])


def _sample(node: Any, references: References, depth: int) -> Any:
    """A value that a person would try first; the schema may still refuse it."""
    schema = references.follow(node) if isinstance(node, dict) else {}
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return "text"
    if "x-resource" in schema and schema["x-resource"] in _RESOURCES:
        return _RESOURCES[schema["x-resource"]]
    for word in ("const", "default"):
        if word in schema:
            return schema[word]
    for word in ("examples", "enum"):
        if schema.get(word):
            return schema[word][0]
    for word in ("anyOf", "oneOf", "allOf"):
        if schema.get(word) and "properties" not in schema:
            return _sample(schema[word][0], references, depth + 1)
    return _sample_of_type(schema, references, depth)


def _sample_of_type(schema: Schema, references: References, depth: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object":
        properties = schema.get("properties", {})
        wanted = [name for name in schema.get("required", ()) if name in properties]
        return {name: _sample(properties[name], references, depth + 1) for name in wanted}
    if kind == "array":
        return [_sample(schema.get("items", {}), references, depth + 1)]
    if kind in ("integer", "number"):
        return schema.get("minimum", _SAMPLES[kind])
    return _SAMPLES.get(str(kind), "text")


def as_shell_word(value: Any) -> str:
    """A value as it is typed after an option."""
    import shlex

    return shlex.quote(value if isinstance(value, str) else json.dumps(value))
