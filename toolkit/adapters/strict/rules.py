"""What each provider takes in strict mode: the part of JSON Schema it documents, and the limits.

From the providers' guides to structured outputs as of late 2026, and from what their validators are known to answer. A whole
request is refused for one keyword, so what is not known to be accepted counts as refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from toolkit.schema.accepts import compile_pattern, has_type

ANNOTATIONS: Final = ("description", "title")
ANYWHERE: Final = ("type", "enum", "const", *ANNOTATIONS)
"""The keywords any schema may have, for every provider."""
# "Simple" repetition counts are accepted and large ones are not; the provider gives no number.
MAX_REPEAT: Final = 64
_PIECE: Final = re.compile(
    r"""
      \\[dws]                                            # classes
    | \\[^A-Za-z0-9]                                     # escaped punctuation
    | \\[nrt]
    | \[\^?(?:\\[dws]|\\[^A-Za-z0-9]|\\[nrt]|[^\]\\\[])+\]  # sets
    | \((?:\?:)?                                         # groups
    | [)|.^$]
    | [*+?]
    | \{(?P<fewest>\d{1,4})(?:,(?P<most>\d{1,4})?)?\}
    | [^\\\[\](){}|.^$*+?]                               # characters
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictRules:
    """The strict mode of one provider.

    ``keywords`` has those a schema of each type may have, besides ``ANYWHERE``. With ``all_required`` every property must be
    required; else one may be left out. ``recursive`` says whether a schema may contain itself. Limits are None where the
    provider has none; those of ``max_tools``, ``max_optional`` and ``max_unions`` hold for all strict tools of a request.
    """

    keywords: Mapping[str, tuple[str, ...]]
    formats: frozenset[str]
    takes_pattern: Callable[[str], bool]
    all_required: bool
    recursive: bool
    lengths_as_patterns: bool
    """Whether the length of a text may be written as a pattern."""
    asks_for_defaults: bool = False
    """Whether a property that has a default must be given, although it could be left out."""
    most_min_items: int | None = None
    max_properties: int | None = None
    max_levels: int | None = None
    max_names: int | None = None
    """Characters of all names of properties and definitions and all values of enums and constants."""
    max_enum: int | None = None
    many_in_enum: int | None = None
    max_many: int | None = None
    """Characters of the values of one enum of texts that has more than ``many_in_enum``."""
    max_tools: int | None = None
    max_optional: int | None = None
    """Properties that are not required."""
    max_unions: int | None = None
    """Schemas with ``anyOf``, or with a list of types."""

    @property
    def limits_requests(self) -> bool:
        """Whether what one tool may have depends on the other tools of the request."""
        return self.max_tools is not None

    def leaner(self) -> StrictRules:
        """The same rules, by which a schema uses less of what a request may have: properties with a default are required."""
        return replace(self, asks_for_defaults=True)

    def takes(self, type: str, word: str, value: Any) -> bool:
        """Whether a schema of this type may have this keyword with this value."""
        if word not in self.keywords[type]:
            return False
        if word == "format":
            return isinstance(value, str) and value in self.formats
        if word == "pattern":
            return isinstance(value, str) and self.takes_pattern(value)
        if word == "minItems":
            most = self.most_min_items
            return has_type(value, "integer") and (most is None or value <= most)
        return has_type(value, "integer" if word == "maxItems" else "number")


def takes_pattern(pattern: str) -> bool:
    """Whether the pattern does without lookaround and back references, which are refused.

    >>> takes_pattern("^[a-z]+$"), takes_pattern("^(?!x)")
    (True, False)
    """
    return compile_pattern(pattern) is not None


def is_plain_pattern(pattern: str) -> bool:
    """Whether a small regular-expression engine, such as Anthropic's, takes a pattern: it has only classes, sets, groups,
    alternatives, anchors and repetitions with small counts.

    >>> is_plain_pattern(r"^[a-z_]+\\d{4}$"), is_plain_pattern(r"\\bword\\b"), is_plain_pattern("^.{1,5000}$")
    (True, False, False)
    """
    if compile_pattern(pattern) is None:
        return False
    at = 0
    while at < len(pattern):
        piece = _PIECE.match(pattern, at)
        if piece is None:
            return False
        counts = [int(count) for count in (piece["fewest"], piece["most"]) if count]
        if any(count > MAX_REPEAT for count in counts):
            return False
        at = piece.end()
    return True


# -- the providers -------------------------------------------------------------------------------------------------------

_OBJECT: Final = ("properties", "required", "additionalProperties")
_NUMBERS: Final = ("multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum")
_FORMATS: Final = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
OPENAI: Final = StrictRules(
    keywords={
        "string": ("pattern", "format"),
        "number": _NUMBERS,
        "integer": _NUMBERS,
        "boolean": (),
        "object": _OBJECT,
        "array": ("items", "minItems", "maxItems"),
        "null": (),
    },
    formats=_FORMATS,
    takes_pattern=takes_pattern,
    all_required=True,
    recursive=True,
    lengths_as_patterns=True,
    max_properties=5_000,
    max_levels=10,
    max_names=120_000,
    max_enum=1_000,
    many_in_enum=250,
    max_many=15_000,
)
ANTHROPIC: Final = StrictRules(
    keywords={
        "string": ("pattern", "format"),
        "number": (),
        "integer": (),
        "boolean": (),
        "object": _OBJECT,
        "array": ("items", "minItems"),
        "null": (),
    },
    formats=_FORMATS | {"uri"},
    takes_pattern=is_plain_pattern,
    all_required=False,
    recursive=False,
    lengths_as_patterns=False,
    most_min_items=1,
    max_tools=20,
    max_optional=24,
    max_unions=16,
)
# Amazon documents no patterns and no limits of its own; its Claude models have Anthropic's.
BEDROCK: Final = StrictRules(
    keywords={**ANTHROPIC.keywords, "string": ("format",)},
    formats=ANTHROPIC.formats,
    takes_pattern=lambda pattern: False,
    all_required=False,
    recursive=False,
    lengths_as_patterns=False,
    most_min_items=1,
    max_tools=ANTHROPIC.max_tools,
    max_optional=ANTHROPIC.max_optional,
    max_unions=ANTHROPIC.max_unions,
)
