"""What the ``jsonschema`` package says about a value: the second opinion the generated models are measured against."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import SchemaError, UnknownType
from jsonschema.validators import validator_for
from referencing.exceptions import Unresolvable

# A schema may be no schema at all: a pattern nobody can read, a limit that is a text, a reference to nowhere.
_NO_VERDICT = (
    re.error, Unresolvable, SchemaError, UnknownType, RecursionError, TypeError, ValueError, AttributeError, OverflowError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """``accepted`` is None where the package cannot judge; ``keyword`` is the first word that refused."""

    accepted: bool | None
    keyword: str | None = None


class Oracle:
    """One schema, in the draft it names (else 2020-12), formats not asserted.

    >>> Oracle({"type": "integer"}).verdict(1.0).accepted, Oracle({"type": "integer"}).verdict("1").keyword
    (True, 'type')
    """

    def __init__(self, schema: Any) -> None:
        known = validator_for(schema, default=Draft202012Validator)
        self.validator = known(schema)

    def verdict(self, value: Any) -> Verdict:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                error: ValidationError | None = next(self.validator.iter_errors(value), None)
        except _NO_VERDICT:
            return Verdict(None)
        return Verdict(True) if error is None else Verdict(False, _leaf(error))

    def accepts(self, part: Any, value: Any) -> bool:
        """Whether a part of the schema, or one made of its parts, accepts a value; no, where nobody can tell."""
        try:
            return self.validator.evolve(schema=part).is_valid(value)
        except _NO_VERDICT:
            return False


def _leaf(error: ValidationError) -> str:
    """The word that refused; in a union with one cause, that of the cause."""
    while error.context and len(error.context) == 1:
        error = error.context[0]
    return str(error.validator)
