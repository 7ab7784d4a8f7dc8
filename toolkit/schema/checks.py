"""Mistakes that JSON Schema permits: keywords that are most likely misspelt, nulls, required names that no object may have.

JSON Schema ignores a keyword that it does not know, so a typo such as ``requird`` would silently change what a tool accepts.
Only near misses are reported: other unknown keywords may be annotations that somebody reads. A required name that is not
declared may be meant so, unless ``additionalProperties: false`` forbids it: then no call could ever pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import takewhile
from typing import Any, Final

from toolkit.errors import nearest
from toolkit.jsonschema.keywords import (
    ANNOTATIONS,
    ASSERTIONS,
    DEFINITIONS,
    IDENTIFIERS,
    SUBSCHEMA_MAPS,
    SUBSCHEMAS,
    Schema,
)
from toolkit.jsonschema.walk import children, subschemas
from toolkit.schema.problems import below, clip, quote

HINTS: Final = ("title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
"""The annotations of a tool that MCP defines."""
_MARKS: Final = ("x-resource", "x-secret")
_OF_OPENAPI: Final = frozenset({"discriminator", "externalDocs", "nullable", "xml"})
# Draft-04 wrote `id`; the other two are common annotations. None of them is a misspelt `$id`, `$comment` or `$schema`.
_NOT_MISSPELT: Final = frozenset({"id", "comment", "schema"})
_KNOWN: Final = frozenset({*ASSERTIONS, *ANNOTATIONS, *DEFINITIONS, *IDENTIFIERS, *_OF_OPENAPI, *_MARKS, "contains"})
_MAY_BE_NULL: Final = frozenset({"const", "default", "example"})
_SHORT_FORMS: Final = {
    "additionalProperty": "additionalProperties", "desc": "description", "max": "maximum", "min": "minimum",
    "property": "properties", "props": "properties", "regex": "pattern",
}  # fmt: skip
_LISTS: Final = frozenset({"allOf", "anyOf", "enum", "examples", "oneOf", "prefixItems", "required"})
_FLAGS: Final = frozenset({"deprecated", "nullable", "readOnly", "uniqueItems", "writeOnly", "x-secret"})
_NUMBERS: Final = re.compile(r"(exclusive)?(min|max)|multipleOf")
_SEPARATORS: Final = re.compile(r"[\s_$-]")
_LONG: Final = 6


def find_misspelt_keywords(schema: object, *, in_yaml: bool) -> Iterator[tuple[str, str]]:
    """What is most likely a mistake, as a message and a pointer into the schema.

    >>> list(find_misspelt_keywords({"type": "object", "requird": ["a"]}, in_yaml=True))
    [("unknown keyword 'requird'. Did you mean 'required'?", '/requird')]
    """
    if not isinstance(schema, dict) or not _is_suspicious(schema):
        return
    for pointer, node in subschemas(schema):
        for word in node:
            message = _judge(word, node, in_yaml)
            if message is not None:
                yield message, below(pointer, word)
        for name in _find_forbidden_names(node):
            yield _explain_forbidden(name, node), below(pointer, "required")


def find_misspelt_hints(annotations: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Near misses of the annotations that MCP defines: a policy may rely on them."""
    for word in annotations:
        near = _nearest(word, HINTS) if word not in HINTS else None
        if near is not None:
            yield f"unknown annotation {quote(word)}. Did you mean {near!r}?", below("", word)


def explain_split_text(key: str, above: Mapping[str, Any]) -> str | None:
    """What happened if a key is the rest of a text: inside ``{...}``, YAML ends an unquoted text at a comma.

    >>> explain_split_text("in it.", {"description": "The file", "in it.": None})
    'an unquoted comma ends a text inside {...}; quote the text: description: "The file, in it."'
    >>> explain_split_text("in the form", {"description": "The file", "in the form": "folder/name"})
    'an unquoted comma ends a text inside {...}; quote the text: description: "The file, in the form: folder/name"'
    """
    words = list(above)
    earlier = list(takewhile(lambda word: word != key, words))
    owner = next((word for word in reversed(earlier) if above[word] is not None), None)
    if owner is None or not isinstance(above[owner], str):
        return None
    after = words[words.index(owner) + 1 :]
    rest = list(takewhile(lambda word: above[word] is None, after))
    if key not in rest:  # a colon in the rest of the text gave its last part a value
        rest.append(f"{key}: {above[key]}")
    text = clip(", ".join([above[owner], *rest])).replace('"', "'")
    return f'an unquoted comma ends a text inside {{...}}; quote the text: {owner}: "{text}"'


def _is_suspicious(schema: Schema) -> bool:
    """A fast answer for the schemas that have nothing to report: all but very few."""
    pending: list[object] = [schema]
    while pending:
        node = pending.pop()
        if not isinstance(node, dict):
            continue
        if not node.keys() <= _KNOWN or None in node.values() or _find_forbidden_names(node):
            return True
        pending += [child for _, child in children(node)]
    return False


def _judge(word: str, node: Schema, in_yaml: bool) -> str | None:
    value = node[word]
    if word in _KNOWN:
        return _explain_null(word, in_yaml) if value is None and word not in _MAY_BE_NULL else None
    near = _nearest_keyword(word)
    if near is not None and (value is None or _is_certain(word, near) or _fits(near, value)):
        return f"unknown keyword {quote(word)}. Did you mean {near!r}?"
    # Nobody names an annotation with a space; but a text may have both a comma and a colon.
    is_cut = value is None or (" " in word and isinstance(value, str))
    split = explain_split_text(word, node) if in_yaml and is_cut and not word.startswith("x-") else None
    if split is not None:
        return f"{quote(word)} is not a keyword: {split}"
    is_null = value is None and not word.startswith("x-")
    return f"{quote(word)} is not a keyword and is null; remove it" if is_null else None


def _find_forbidden_names(node: Schema) -> list[str]:
    """The required names that no object may have."""
    if "required" not in node or node.get("additionalProperties") is not False or node.get("patternProperties"):
        return []
    names, properties = node["required"], node.get("properties", {})
    if not isinstance(names, list) or not isinstance(properties, dict):
        return []
    return [name for name in names if isinstance(name, str) and name not in properties]


def _explain_forbidden(name: str, node: Schema) -> str:
    near = nearest(name, node.get("properties", {}))
    way_out = f".{near}" if near else "; declare it, or remove it here"
    return (
        f"{quote(name)} is required but not declared in 'properties', and 'additionalProperties: false' forbids other"
        f" names{way_out}"
    )


def _explain_null(word: str, in_yaml: bool) -> str:
    if word == "type":
        return "'type' is null; write \"null\" in quotes if no other value is allowed"
    empty = "has no value" if in_yaml else "is null"
    return f"{word!r} {empty}; give it a value, or remove it"


@lru_cache(1024)
def _nearest_keyword(word: str) -> str | None:
    if word.startswith("x-"):
        return _nearest(word, _MARKS)
    if word in _NOT_MISSPELT:
        return None
    return _SHORT_FORMS.get(word) or _nearest(word, tuple(sorted(_KNOWN)))


def _nearest(word: str, known: tuple[str, ...]) -> str | None:
    """The known word that this one most likely stands for: the same but for case and separators, or few typos away."""
    plain = _plain(word)
    same = next((other for other in known if _plain(other) == plain), None)
    if same is not None or not 3 <= len(word) <= 40:
        return same
    distances = {other: _distance(word, other) for other in known if abs(len(other) - len(word)) <= 2}
    best = min(distances, key=lambda other: distances[other], default=None)
    return best if best is not None and distances[best] <= (2 if len(word) > _LONG else 1) else None


def _plain(word: str) -> str:
    return _SEPARATORS.sub("", word).casefold()


def _is_certain(word: str, near: str) -> bool:
    """Whether the value need not be looked at: an annotation of that name is hard to imagine."""
    is_plural = word == f"{near}s"
    return _plain(word) == _plain(near) or (len(word) >= _LONG and _distance(word, near) == 1 and not is_plural)


def _distance(one: str, other: str) -> int:
    """How many letters must be added, removed, replaced or swapped with the next one."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, wanted in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return row[-1]


def _fits(word: str, value: object) -> bool:
    """Whether a value has the kind that this keyword takes."""
    if word in _LISTS:
        return isinstance(value, list)
    if word in _FLAGS:
        return isinstance(value, bool)
    if word in SUBSCHEMA_MAPS or word == "dependentRequired":
        return isinstance(value, dict)
    if word in SUBSCHEMAS or word == "contentSchema":
        return isinstance(value, dict | bool)
    if _NUMBERS.match(word):
        return isinstance(value, int | float) and not isinstance(value, bool)
    if word == "type":
        return isinstance(value, str | list)
    return word in _MAY_BE_NULL or isinstance(value, str)
