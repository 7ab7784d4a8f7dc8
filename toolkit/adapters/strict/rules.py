"""What OpenAI takes in strict mode: the part of JSON Schema it documents, and the limits.

From its guide to structured outputs as of late 2026, and from its validator's known answers: it refuses a whole request
for one keyword, so what is not known to be accepted counts as refused.
"""

from __future__ import annotations

from typing import Final

from toolkit.jsonschema.accepts import compile_pattern

_NUMBERS: Final = ("multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum")
KEYWORDS: Final[dict[str, tuple[str, ...]]] = {
    "string": ("pattern", "format"),
    "number": _NUMBERS,
    "integer": _NUMBERS,
    "boolean": (),
    "object": ("properties", "required", "additionalProperties"),
    "array": ("items", "minItems", "maxItems"),
    "null": (),
}
"""The keywords a schema of each type may have, besides those that any schema may have."""
ANNOTATIONS: Final = ("description", "title")
ANYWHERE: Final = ("type", "enum", "const", *ANNOTATIONS)

FORMATS: Final = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)  # fmt: skip

MAX_PROPERTIES: Final = 5_000
MAX_LEVELS: Final = 10
MAX_NAMES: Final = 120_000
"""Characters of all names of properties and definitions and all values of enums and constants."""
MAX_ENUM: Final = 1_000
MANY_IN_ENUM: Final = 250
MAX_MANY: Final = 15_000
"""Characters of the values of one enum of texts that has more than ``MANY_IN_ENUM``."""


def takes_pattern(pattern: str) -> bool:
    """Whether the pattern does without lookaround and back references, which are refused.

    >>> takes_pattern("^[a-z]+$"), takes_pattern("^(?!x)")
    (True, False)
    """
    return compile_pattern(pattern) is not None
