"""The verdict of the ``jsonschema`` package on a value: the reference for the generated models."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import SchemaError, UnknownType
from jsonschema.validators import validator_for
from referencing.exceptions import Unresolvable

# The schema may be invalid: an unreadable pattern, a limit that is a string, a reference to nowhere.
_NO_VERDICT = (
    re.error, Unresolvable, SchemaError, UnknownType, RecursionError, TypeError, ValueError, AttributeError, OverflowError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """``accepted`` is None if the package has no verdict; ``keyword`` is the first keyword that refused the value."""

    accepted: bool | None
    keyword: str | None = None


class Oracle:
    """One schema, in the draft it names (otherwise 2020-12); formats are not asserted, patterns are those of ECMA-262.

    >>> Oracle({"type": "integer"}).verdict(1.0).accepted, Oracle({"type": "integer"}).verdict("1").keyword
    (True, 'type')
    """

    def __init__(self, schema: Any) -> None:
        known = validator_for(schema, default=Draft202012Validator)
        self.validator = known(_with_ascii_classes(schema))

    def verdict(self, value: Any) -> Verdict:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                error: ValidationError | None = next(self.validator.iter_errors(value), None)
        except _NO_VERDICT:
            return Verdict(None)
        return Verdict(True) if error is None else Verdict(False, _leaf(error))

    def accepts(self, part: Any, value: Any) -> bool:
        """Whether a part of the schema, or one built from its parts, accepts a value; False if there is no verdict."""
        try:
            return self.validator.evolve(schema=_with_ascii_classes(part)).is_valid(value)
        except _NO_VERDICT:
            return False


_SET_OR_CLASS = re.compile(r"\\[dDwWsS]|\\.|\[(?:\\.|[^\]\\])*\]", re.DOTALL)
_DATA = frozenset({"const", "default", "enum", "example", "examples"})


def _with_ascii_classes(node: Any) -> Any:
    """The schema with patterns as ECMA-262 reads them: the package gives them to ``re``, whose classes are Unicode's."""
    if isinstance(node, list):
        return [_with_ascii_classes(item) for item in node]
    if not isinstance(node, dict):
        return node
    made = {word: value if word in _DATA else _with_ascii_classes(value) for word, value in node.items()}
    if isinstance(made.get("pattern"), str):
        made["pattern"] = _ascii_classes(made["pattern"])
    if isinstance(made.get("patternProperties"), dict):
        made["patternProperties"] = {_ascii_classes(key): value for key, value in made["patternProperties"].items()}
    return made


def _ascii_classes(pattern: str) -> str:
    def wrap(found: re.Match[str]) -> str:
        return f"(?a:{found[0]})" if found[0][0] == "[" or found[0][1] in "dDwWsS" else found[0]

    return _SET_OR_CLASS.sub(wrap, pattern)


def _leaf(error: ValidationError) -> str:
    """The keyword that refused; in a union with a single cause, the keyword of that cause."""
    while error.context and len(error.context) == 1:
        error = error.context[0]
    return str(error.validator)
