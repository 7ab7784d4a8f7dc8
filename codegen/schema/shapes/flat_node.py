"""The parts of a flat node that is being made."""

from __future__ import annotations

from typing import Final

from toolkit.codegen.schema.keywords import LIMITS
from toolkit.jsonschema.keywords import Schema

OF_ITS_PLACE: Final = ("default", "description")
"""The keywords of a flat node that describe the place where it is used."""


def bare(flat: Schema) -> Schema:
    """A node without the keywords that describe another place."""
    return {word: value for word, value in flat.items() if word not in OF_ITS_PLACE}


def size(flat: object) -> int:
    """How many nodes are in a flat one; a named node counts once, wherever it is named."""
    if not isinstance(flat, dict):
        return 0
    inner = [flat.get("items"), flat.get("additionalProperties"), *flat.get("anyOf", ())]
    return 1 + sum(map(size, [*inner, *flat.get("properties", {}).values()]))


def carries_limits(flat: Schema) -> bool:
    """Whether a node inside another one needs a name of its own: else datamodel-code-generator makes one up."""
    kind = flat.get("type")
    return kind not in (None, "object") and any(word in flat for word in LIMITS[kind] if word != "items")
