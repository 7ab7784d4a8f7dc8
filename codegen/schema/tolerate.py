"""Typos: what a schema writes in a way that JSON Schema does not know, although its meaning is clear.

They are corrected before anything else looks at the schema, each with a finding; one typo must not cost a whole tool.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from toolkit.codegen.schema.report import Notes
from toolkit.jsonschema.keywords import ASSERTIONS, Schema
from toolkit.jsonschema.pointer import join_pointer
from toolkit.jsonschema.types import unknown_type
from toolkit.jsonschema.walk import map_children

_KNOWN_DRAFT: Final = re.compile(r"https?://json-schema\.org/(draft-0[467]|draft/20(19-09|20-12)|schema)\b")
_TEXTS: Final = ("format", "contentEncoding", "contentMediaType")
_EXCLUSIVE: Final = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}


def mend(schema: Any, notes: Notes, pointer: str = "") -> Any:
    """The schema without its typos; where there are none, an equal one."""
    if not isinstance(schema, dict):
        return schema
    kept: Schema = {}
    for word, value in schema.items():
        if value is None and word in ASSERTIONS and word != "const":
            notes.finding(f"{word!r} is null and is ignored", join_pointer(pointer, word))
        else:
            kept[word] = value
    found = map_children(kept, lambda inner, place: mend(inner, notes, place), pointer)
    for word in [word for word in found if word in _MEND]:
        _MEND[word](found, word, notes, pointer)
    return found


def _mend_required(schema: Schema, word: str, notes: Notes, pointer: str) -> None:
    names = schema[word]
    if isinstance(names, bool):
        notes.finding("'required' is a list of names next to 'properties'; on a property it has no effect", pointer)
        del schema[word]
    elif isinstance(names, list) and all(isinstance(name, str) for name in names):
        schema[word] = list(dict.fromkeys(names))


def _mend_type(schema: Schema, word: str, notes: Notes, pointer: str) -> None:
    types = schema[word]
    if isinstance(types, list) and all(isinstance(one, str) for one in types):
        schema[word] = list(dict.fromkeys(types))
    if types == []:
        notes.problem(unknown_type(()), f"{pointer}/type")


def _mend_exclusive(schema: Schema, word: str, notes: Notes, pointer: str) -> None:
    """Up to draft-04 these were true or false, next to the limit itself."""
    if not isinstance(schema[word], bool):
        return
    notes.finding(f"{word!r} is a number since draft-06; the boolean is read as in draft-04", f"{pointer}/{word}")
    limit = _EXCLUSIVE[word]
    if schema.pop(word) and limit in schema:
        schema[word] = schema.pop(limit)


def _mend_text(schema: Schema, word: str, notes: Notes, pointer: str) -> None:
    if not isinstance(schema[word], str):
        notes.finding(f"{word!r} is not a string and is ignored", f"{pointer}/{word}")
        del schema[word]


def _mend_draft(schema: Schema, word: str, notes: Notes, pointer: str) -> None:
    if not isinstance(schema[word], str) or not _KNOWN_DRAFT.match(schema[word]):
        notes.finding("'$schema' does not name a draft from 04 to 2020-12; it is read as 2020-12", f"{pointer}/{word}")
        del schema[word]


_MEND: Final[dict[str, Callable[[Schema, str, Notes, str], None]]] = {
    "required": _mend_required,
    "type": _mend_type,
    "$schema": _mend_draft,
    **dict.fromkeys(_EXCLUSIVE, _mend_exclusive),
    **dict.fromkeys(_TEXTS, _mend_text),
}
