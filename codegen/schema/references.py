"""References inside one schema: JSON pointers are followed, nothing is read from elsewhere."""

from __future__ import annotations

import re
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from toolkit.codegen.schema.keywords import SUBSCHEMA_LISTS, SUBSCHEMA_MAPS, SUBSCHEMAS

Schema: TypeAlias = dict[str, Any]

_OF_JSON_SCHEMA: Final = re.compile(r"https?://json-schema\.org/draft")
_OLD_DRAFTS: Final = re.compile(r"^https?://json-schema\.org/draft-0[3-7]/schema#?$")


class References:
    """What the references of one schema mean."""

    def __init__(self, root: Schema) -> None:
        self.root = root
        self.ignores_siblings: Final = _OLD_DRAFTS.match(str(root.get("$schema", ""))) is not None
        """Up to draft-07 the words beside a reference have no effect."""
        # Below another base a pointer means another document; the validator at run time knows, types need not.
        self._has_bases = any("$id" in part for part in subschemas(root) if part is not root)

    def place(self, ref: object) -> str | None:
        """The place a reference names by pointer ("" for the root), or None for one that only the validator follows."""
        if not isinstance(ref, str) or not re.match(r"#(/|$)", ref) or self._has_bases:
            return None
        return unquote(ref[1:])

    def may_lead_inside(self, ref: object) -> bool:
        """Whether a reference that is no pointer can lead to a part of this schema, or to JSON Schema's own schemas."""
        if not isinstance(ref, str):
            return False
        anchored = any(word in part for part in subschemas(self.root) for word in ("$anchor", "$dynamicAnchor", "$id"))
        return anchored or _OF_JSON_SCHEMA.match(ref) is not None

    def at(self, place: str) -> object:
        """What stands at a place; raises ``LookupError`` where nothing does."""
        node: object = self.root
        for part in place.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(node, list) and key.isdecimal():
                node = node[int(key)]
            elif isinstance(node, dict):
                node = node[key]
            else:
                raise KeyError(place)
        return node


def subschemas(schema: object) -> list[Schema]:
    """The schema itself and every schema inside it, wherever a keyword holds one."""
    found: list[Schema] = []
    pending = [schema]
    while pending:
        node = pending.pop()
        if not isinstance(node, dict):
            continue
        found.append(node)
        for word, value in node.items():
            if word in SUBSCHEMAS and isinstance(value, dict):
                pending.append(value)
            if word in SUBSCHEMA_LISTS and isinstance(value, list):
                pending += value
            if word in SUBSCHEMA_MAPS and isinstance(value, dict):
                pending += value.values()
    return found


def escaped(key: str) -> str:
    """A key as a part of a pointer."""
    return key.replace("~", "~0").replace("/", "~1")
