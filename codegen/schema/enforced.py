"""The schema that is judged at run time: the spec's own, without prose, checked to be one that the validator takes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from toolkit.errors import GenerationError
from toolkit.jsonschema.keywords import Schema
from toolkit.jsonschema.types import TYPES, types_of, unknown_type
from toolkit.jsonschema.walk import map_children, subschemas

_PROSE: Final = frozenset(
    {"$comment", "default", "deprecated", "description", "example", "examples", "readOnly", "title", "writeOnly"}
)
MAX_PATTERNS: Final = 500
"""Each may take megabytes once it is compiled."""

_TUPLE: Final = (
    "'items' is a list, as in drafts before 2020-12: write 'prefixItems' instead, or name the draft,"
    ' such as "$schema": "http://json-schema.org/draft-07/schema#"'
)
_ELSEWHERE: Final = re.compile(r"Resource ('.*?') is not present in a registry")


def enforced_text(schema: Schema) -> str:
    """The schema as JSON text for ``toolkit.schema.enforce``."""
    return json.dumps(_without_prose(schema), ensure_ascii=False, separators=(",", ":"))


def mistake_in(schema: Schema) -> str | None:
    """Why the validator does not take a schema, or None: a reference to elsewhere, a pattern that is not linear, …"""
    patterns = set(_patterns(schema))
    if len(patterns) > MAX_PATTERNS:
        return f"it has {len(patterns)} different patterns; at most {MAX_PATTERNS} are allowed"
    from toolkit.schema.enforce import new_validator  # with pydantic, which most schemas do not need here

    try:
        new_validator(_without_prose(schema))
    except ImportError:
        raise GenerationError("generation needs jsonschema-rs: pip install 'typed-toolkit[codegen]'") from None
    except ValueError as error:
        return _explain(error)
    return None


def usual_mistakes(schema: Schema) -> list[tuple[str, str]]:
    """Mistakes with a known way out in a schema that the validator does not take, each with its pointer."""
    found = []
    is_current = "2020-12" in str(schema.get("$schema", "2020-12"))
    for pointer, node in subschemas(schema):
        if is_current and isinstance(node.get("items"), list):
            found.append((_TUPLE, f"{pointer}/items"))
        types = types_of(node) or ()
        if any(one not in TYPES for one in types):
            found.append((unknown_type(types), f"{pointer}/type"))
    return found


def _patterns(node: object) -> Iterator[str]:
    """All patterns, also in places that only a reference leads to."""
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


def _explain(error: ValueError) -> str:
    message = str(error).splitlines()[0][:300]
    away = _ELSEWHERE.match(message)
    if away is not None:
        return f"it refers to {away[1]}, but nothing is read from elsewhere; move that schema to '$defs'"
    place = "".join(f"/{part}" for part in getattr(error, "instance_path", ()))
    return f"{message} ({place})" if place else message


def is_valid(schema: object, root: Schema, value: object) -> bool:
    """Whether a value fits a part of a schema, whose references lead into the whole."""
    from toolkit.schema.enforce import new_validator

    whole: Schema = {word: root[word] for word in ("$defs", "definitions", "$schema") if word in root}
    try:
        return new_validator({**whole, "allOf": [_without_prose(schema)]}).is_valid(value)
    except ValueError:
        return False


def _without_prose(node: Any, pointer: str = "") -> Any:
    """A schema without its prose; no pointer leads through prose."""
    if not isinstance(node, dict):
        return node
    kept = {word: value for word, value in node.items() if word not in _PROSE and not word.startswith("x-")}
    return map_children(kept, _without_prose)
