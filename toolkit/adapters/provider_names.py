"""Names of tools as a provider takes them."""

from __future__ import annotations

from re import Pattern
from typing import Final

from toolkit.wire.alias import alias

MADE_ID: Final = "made-"
"""Begins the ids of calls that came without one; such an id is never sent."""


def provider_name(name: str, accepted: Pattern[str]) -> str:
    """The name itself where the provider takes it, else its alias, which the toolkit knows again.

    >>> import re
    >>> provider_name("read_file", re.compile(r"\\w+"))
    'read_file'
    """
    return name if accepted.fullmatch(name) else alias(name)
