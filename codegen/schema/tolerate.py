"""Slips of the pen: what a schema writes in a way JSON Schema does not know, and plainly means something, or nothing.

They are set right before anything else looks at the schema, each with a finding; one slip must not cost a whole tool.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from toolkit.codegen.schema.keywords import ASSERTIONS, SUBSCHEMA_LISTS, SUBSCHEMA_MAPS, SUBSCHEMAS
from toolkit.codegen.schema.kinds import unknown_type
from toolkit.codegen.schema.references import Schema, escaped
from toolkit.codegen.schema.report import Notes

_KNOWN_DRAFT: Final = re.compile(r"https?://json-schema\.org/(draft-0[467]|draft/20(19-09|20-12)|schema)\b")
_TEXTS: Final = ("format", "contentEncoding", "contentMediaType")
_EXCLUSIVE: Final = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}


def mended(schema: Any, notes: Notes, pointer: str = "") -> Any:
    """The schema without its slips; where there are none, an equal one."""
    if not isinstance(schema, dict):
        return schema
    found: Schema = {}
    for word, value in schema.items():
        place = f"{pointer}/{escaped(word)}"
        if value is None and word in ASSERTIONS and word != "const":
            notes.finding(f"{word!r} is null, which says nothing", place)
        elif word in SUBSCHEMA_MAPS and isinstance(value, dict):
            found[word] = {key: mended(item, notes, f"{place}/{escaped(key)}") for key, item in value.items()}
        elif word in SUBSCHEMA_LISTS and isinstance(value, list):
            found[word] = [mended(item, notes, f"{place}/{index}") for index, item in enumerate(value)]
        else:
            found[word] = mended(value, notes, place) if word in SUBSCHEMAS else value
    for word in [word for word in found if word in _MEND]:
        _MEND[word](found, word, notes, pointer)
    return found


def _required(schema: Schema, word: str, notes: Notes, pointer: str) -> None:
    names = schema[word]
    if isinstance(names, bool):
        notes.finding("'required' is a list of names beside 'properties'; on a property it has no effect", pointer)
        del schema[word]
    elif isinstance(names, list) and all(isinstance(name, str) for name in names):
        schema[word] = list(dict.fromkeys(names))


def _type(schema: Schema, word: str, notes: Notes, pointer: str) -> None:
    kinds = schema[word]
    if isinstance(kinds, list) and all(isinstance(kind, str) for kind in kinds):
        schema[word] = list(dict.fromkeys(kinds))
    if kinds == []:
        notes.problem(unknown_type(()), f"{pointer}/type")


def _exclusive(schema: Schema, word: str, notes: Notes, pointer: str) -> None:
    """Up to draft-04 these were true or false, and the limit stood beside them."""
    if not isinstance(schema[word], bool):
        return
    notes.finding(f"{word!r} is a number since draft-06; it is read as draft-04 meant it", f"{pointer}/{word}")
    beside = _EXCLUSIVE[word]
    if schema.pop(word) and beside in schema:
        schema[word] = schema.pop(beside)


def _text(schema: Schema, word: str, notes: Notes, pointer: str) -> None:
    if not isinstance(schema[word], str):
        notes.finding(f"{word!r} is no text, which says nothing", f"{pointer}/{word}")
        del schema[word]


def _draft(schema: Schema, word: str, notes: Notes, pointer: str) -> None:
    if not isinstance(schema[word], str) or not _KNOWN_DRAFT.match(schema[word]):
        notes.finding("'$schema' names no draft from 04 to 2020-12; it is read as 2020-12", f"{pointer}/{word}")
        del schema[word]


_MEND: Final[dict[str, Callable[[Schema, str, Notes, str], None]]] = {
    "required": _required,
    "type": _type,
    "$schema": _draft,
    **dict.fromkeys(_EXCLUSIVE, _exclusive),
    **dict.fromkeys(_TEXTS, _text),
}
