"""What packs of every kind do with an answer: find what JSON cannot express (NaN, infinite numbers, ``1e999``), redact the
values of secret variables, and attach media.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Final

from toolkit.visible import display
from toolkit.wire.content import BlockType

_MAX_KEY: Final = 100
_MAX_KEYS: Final = 10


def find_not_json(value: object) -> str:
    """What is wrong with a parsed value, and where; an empty text if it can be written as JSON again.

    >>> find_not_json({"a": [1, float("nan")]})
    "has NaN at 'a.1', which is not JSON"
    """
    try:
        json.dumps(value, allow_nan=False)
    except RecursionError:
        return "is nested too deeply"
    except ValueError:
        return _find_number(value)
    return ""


def _find_number(value: object) -> str:
    waiting: list[tuple[object, tuple[object, ...]]] = [(value, ())]
    while waiting:
        found, place = waiting.pop()
        if isinstance(found, float) and not math.isfinite(found):
            name = "NaN" if math.isnan(found) else "Infinity" if found > 0 else "-Infinity"
            where = ".".join(display(str(key)[:_MAX_KEY]) for key in place[:_MAX_KEYS])
            return f"has {name} at '{where}', which is not JSON"
        if isinstance(found, dict):
            waiting += [(item, (*place, key)) for key, item in found.items()]
        elif isinstance(found, list):
            waiting += [(item, (*place, number)) for number, item in enumerate(found)]
    return "is not JSON"


# ----------------------------------------------------------------------------------------------------------------------
# Keeping the values of secret variables out of texts that come from a server.

_SHORTEST_SECRET: Final = 4


def hide_secrets(text: str, secrets: Iterable[tuple[str, str]]) -> str:
    """The text with each secret value replaced; ``secrets`` are pairs of what to show and the value.

    Limit: values shorter than four characters stay. They would match everywhere, and the gaps would reveal them.

    >>> hide_secrets("key hunter2 refused", [("${KEY}", "hunter2")])
    'key ${KEY} refused'
    """
    for shown, value in secrets:
        if len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, shown)
    return text


# ----------------------------------------------------------------------------------------------------------------------
# What packs of every kind do with media in an answer.


def block_type(media_type: str) -> BlockType:
    """The type of content block for a media type.

    >>> [block_type(name) for name in ("image/png", "audio/ogg", "application/pdf")]
    ['image', 'audio', 'document']
    """
    family = media_type.partition("/")[0]
    return "image" if family == "image" else "audio" if family == "audio" else "document"
