"""Tool names and call ids that a provider accepts."""

from __future__ import annotations

import hashlib
import re
from re import Pattern
from typing import Final

from toolkit.wire.aliases import alias

OPENAI_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What OpenAI accepts as the name of a tool, and those who follow it."""

_DIGEST: Final = 12
MADE_ID: Final = "made-"
"""The prefix of ids given to calls that came without one; such an id is never sent."""


def provider_name(name: str, accepted: Pattern[str]) -> str:
    """The name itself if the provider accepts it, else its alias, which the toolkit resolves.

    >>> provider_name("read_file", OPENAI_NAME), provider_name("math.factorial", OPENAI_NAME)
    ('read_file', 'math_factorial-2f2114b7')
    """
    return name if accepted.fullmatch(name) else alias(name)


def provider_id(id: str, longest: int) -> str:
    """The id of a call, shortened if the provider's limit demands it; the same for a call and its result.

    >>> provider_id("call_1", 40), provider_id("call_" + "0123456789" * 9, 40)
    ('call_1', 'call_0123456789012345678901-829500c93043')
    """
    if len(id) <= longest:
        return id
    digest = hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    return f"{id[: longest - _DIGEST - 1]}-{digest}"
