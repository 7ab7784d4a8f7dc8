"""The schema that is judged at run time: the spec's own, without prose, proved to be one that the validator takes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from toolkit.codegen.schema.keywords import SUBSCHEMA_LISTS, SUBSCHEMA_MAPS, SUBSCHEMAS
from toolkit.codegen.schema.patterns import for_validator
from toolkit.codegen.schema.references import Schema
from toolkit.errors import GenerationError
from toolkit.models.enforce import new_validator

_PROSE: Final = frozenset(
    {"$comment", "default", "deprecated", "description", "example", "examples", "readOnly", "title", "writeOnly"}
)
MAX_PATTERNS: Final = 500
"""Each may take megabytes once it is compiled."""

_ELSEWHERE: Final = re.compile(r"Resource ('.*?') is not present in a registry")


def enforced_text(schema: Schema) -> str:
    """The schema as JSON text for ``toolkit.models.enforce``."""
    return json.dumps(_bare(schema), ensure_ascii=False, separators=(",", ":"))


def mistake_in(schema: Schema) -> str | None:
    """Why the validator takes no such schema, or None: a reference to elsewhere, a pattern that is not linear, …"""
    patterns = set(_patterns(schema))
    if len(patterns) > MAX_PATTERNS:
        return f"it has {len(patterns)} different patterns, more than {MAX_PATTERNS}"
    try:
        new_validator(_bare(schema))
    except ImportError:
        raise GenerationError("generation needs jsonschema-rs: pip install 'typed-toolkit[codegen]'") from None
    except ValueError as error:
        return _told(error)
    return None


def _patterns(node: object) -> Iterator[str]:
    """All patterns, also where no keyword leads: a reference may."""
    if isinstance(node, list):
        for item in node:
            yield from _patterns(item)
    elif isinstance(node, dict):
        for word, value in node.items():
            if word == "pattern" and isinstance(value, str):
                yield value
            elif word == "patternProperties" and isinstance(value, dict):
                yield from value
            yield from _patterns(value)


def _told(error: ValueError) -> str:
    message = str(error).splitlines()[0][:300]
    away = _ELSEWHERE.match(message)
    if away is not None:
        return f"it refers to {away[1]}, and nothing is read from elsewhere; put that under '$defs'"
    place = "".join(f"/{part}" for part in getattr(error, "instance_path", ()))
    return f"{message} ({place})" if place else message


def is_valid(schema: object, root: Schema, value: object) -> bool:
    """Whether a value fits a part of a schema, its references meant as they stand in the whole."""
    whole: Schema = {word: root[word] for word in ("$defs", "definitions", "$schema") if word in root}
    try:
        return new_validator({**whole, "allOf": [_bare(schema)]}).is_valid(value)
    except ValueError:
        return False


def _bare(node: Any) -> Any:
    """A schema without its prose; a pointer into a schema never leads through prose."""
    if not isinstance(node, dict):
        return node
    bare: Schema = {}
    for word, value in node.items():
        if word in _PROSE or word.startswith("x-"):
            continue
        if word == "patternProperties" and isinstance(value, dict):
            bare[word] = {for_validator(key): _bare(item) for key, item in value.items()}
        elif word == "pattern" and isinstance(value, str):
            bare[word] = for_validator(value)
        elif word in SUBSCHEMA_MAPS and isinstance(value, dict):
            bare[word] = {key: _bare(item) for key, item in value.items()}
        elif word in SUBSCHEMA_LISTS and isinstance(value, list):
            bare[word] = [_bare(item) for item in value]
        else:
            bare[word] = _bare(value) if word in SUBSCHEMAS else value
    return bare
