"""JSON as ``json.dumps(value, indent=1, ensure_ascii=False)`` writes it, in less than half of the time.

With an indent, the standard library does not use its encoder in C.
"""

from __future__ import annotations

import json
from json.encoder import encode_basestring
from typing import Any, Final


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
