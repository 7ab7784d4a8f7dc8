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
    """One schema, in the draft it names (otherwise 2020-12); formats are not asserted.

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
        """Whether a part of the schema, or one built from its parts, accepts a value; False if there is no verdict."""
        try:
            return self.validator.evolve(schema=part).is_valid(value)
        except _NO_VERDICT:
            return False


def _leaf(error: ValidationError) -> str:
    """The keyword that refused; in a union with a single cause, the keyword of that cause."""
    while error.context and len(error.context) == 1:
        error = error.context[0]
    return str(error.validator)
