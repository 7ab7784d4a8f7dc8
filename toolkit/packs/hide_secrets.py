"""Keeping the values of secret variables out of texts that come from a server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

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
