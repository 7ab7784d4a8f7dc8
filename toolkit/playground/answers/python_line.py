"""The Python code that makes the same call as the form."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

_WIDTH: Final = 88


def python_line(row: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """A call of the tool with these arguments; ``row`` is its definition in the catalog.

    >>> row = {"name": "read_file", "attribute": "read_file", "parameters": [{"wire": "path", "name": "path"}]}
    >>> python_line(row, {"path": "README.md"})
    "toolkit.tools.read_file(path='README.md')"
    >>> python_line(row, {"no such": 1})
    "toolkit.invoke('read_file', {'no such': 1})"
    """
    names = {one["wire"]: one["name"] for one in row.get("parameters", ())}
    if "parameters" not in row or not names.keys() >= arguments.keys():
        # A code-first tool has no method, and further properties have no parameter.
        return f"toolkit.invoke({row['name']!r}, {_literal(arguments)})"
    given = [f"{names[wire]}={_literal(value)}" for wire, value in arguments.items()]
    function = f"toolkit.tools.{row['attribute']}"
    line = f"{function}({', '.join(given)})"
    if len(line) <= _WIDTH:
        return line
    return "\n".join([f"{function}(", *(f"    {one}," for one in given), ")"])


def _literal(value: object) -> str:
    """A JSON value as Python. ``repr`` shows hidden characters as escapes."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {_literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, float) and not math.isfinite(value):  # 1e999 is JSON
        return f"float('{value}')"
    return repr(value)
