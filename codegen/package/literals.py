"""Values from specs as Python source: inert by construction."""

from __future__ import annotations

import ast
import json
from json.encoder import encode_basestring
from typing import Any, Final


def literal(value: object) -> str:
    """Source text whose value is ``value``.

    >>> literal({"a": [1, None, "it's"]})
    '{"a": [1, None, "it\\'s"]}'
    """
    if isinstance(value, str):
        return text_literal(value)
    if isinstance(value, tuple):
        return "(" + ", ".join(map(literal, value)) + ("," if len(value) == 1 else "") + ")"
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(key)}: {literal(item)}" for key, item in value.items()) + "}"
    return repr(value)


def text_literal(text: str) -> str:
    """A string literal, in double quotes where that needs no more escapes than single ones (as formatters write it)."""
    single = repr(text)
    if single[0] == '"' or '"' in text:
        return single
    return f'"{single[1:-1]}"'


def docstring(text: str, indent: str) -> str:
    """A readable docstring whose value is ``text``, up to whitespace that docstring readers strip."""
    lines = [_escape_line(line) for line in text.strip().split("\n")]
    lines = [lines[0], *(f"{indent}{line}" if line else "" for line in lines[1:])]
    body = "\n".join(lines) if len(lines) == 1 else "\n".join(lines) + f"\n{indent}"
    # A quote at the very end would run into the closing quotes; one of three is escaped already.
    if body.endswith('"') and not body.endswith('\\"\\"\\"'):
        body = body[:-1] + '\\"'
    source = f'"""{body}"""'
    if "\\" not in body and '"' not in body:  # nothing that could be read as anything but itself
        return indent + source
    if not isinstance(ast.literal_eval(source), str):
        raise ValueError("a docstring must be a string")
    return indent + source


def _escape_line(line: str) -> str:
    """The line, with everything escaped that could end the literal or that an editor would not show."""
    escaped = line.replace("\\", "\\\\").replace('"""', '\\"\\"\\"').rstrip()
    if escaped.isprintable():
        return escaped
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in escaped)


# ----------------------------------------------------------------------------------------------------------------------
# JSON as ``json.dumps(value, indent=1, ensure_ascii=False)`` writes it, in less than half the time: with an indent, the
# standard library does not use its encoder in C.


def indented_json(value: Any, newline: str = "\n") -> str:
    """The text of a value; its lines after the first start as ``newline`` ends.

    >>> indented_json({"a": [1, "b"], "c": {}}) == json.dumps({"a": [1, "b"], "c": {}}, indent=1)
    True
    """
    if isinstance(value, str):
        return encode_basestring(value)
    inner = f"{newline} "
    if isinstance(value, dict):
        items = [f"{encode_basestring(key)}: {indented_json(item, inner)}" for key, item in value.items()]
        return f"{{{inner}{f',{inner}'.join(items)}{newline}}}" if items else "{}"
    if isinstance(value, list | tuple):
        items = [indented_json(item, inner) for item in value]
        return f"[{inner}{f',{inner}'.join(items)}{newline}]" if items else "[]"
    return _WORDS[value] if value is None or isinstance(value, bool) else json.dumps(value)


_WORDS: Final = {None: "null", True: "true", False: "false"}
