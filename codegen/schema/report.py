"""What flattening a schema reports, so that one run reports everything."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from toolkit.jsonschema.keywords import Schema


class Loss(StrEnum):
    """Why a type says less than its schema. The values name the reasons in reports."""

    NO_TYPE = "keywords without a type"
    ONLY_CHECKED = "keywords that are only checked"
    OPEN_BRANCH = "a branch accepts any value"
    OTHER_BRANCHES = "declared by some branches only"
    TOO_MANY_BRANCHES = "too many branches"
    CIRCULAR = "circular references"
    UNKNOWN_REFERENCE = "references that are only checked"
    NEVER_VALID = "no value is valid"
    NOT_A_KEYWORD = "properties outside of 'properties'"
    OPEN_TUPLE = "an array with an open end"
    OPEN_PATTERNS = "patterns among other properties"


_SENTENCES: Final = {
    Loss.NO_TYPE: "{} has no 'type' next to it, so any value of another type is valid and the type is Any; add 'type'",
    Loss.ONLY_CHECKED: "{} is checked at run time only, so the type is Any; add 'type' if values have one",
    Loss.OPEN_BRANCH: "a branch of {} accepts any value, so the type is Any; give that branch a 'type', or remove it",
    Loss.OTHER_BRANCHES: "{} is declared by some branches only; where another branch holds, any value is accepted;"
    " set 'additionalProperties' to false in the branches, or declare it next to 'properties'",
    Loss.TOO_MANY_BRANCHES: "the union has too many branches for a type, so the type is Any; use fewer",
    Loss.CIRCULAR: "its references lead back to itself with nothing in between, so the type is Any; remove one of them",
    Loss.UNKNOWN_REFERENCE: "this reference is followed at run time only, so the type is Any;"
    " refer to a JSON pointer such as '#/$defs/<name>'",
    Loss.NEVER_VALID: "no value is valid here, so the type is Any; remove it, or correct it",
    Loss.NOT_A_KEYWORD: "{} is not a keyword and has no effect, so the type is Any; if it is a property, move it into"
    " 'properties'",
    Loss.OPEN_TUPLE: "items after those of 'prefixItems' may be anything, so the type of the items is Any;"
    " set 'items' to false or to a schema",
    Loss.OPEN_PATTERNS: "properties that match no pattern may be anything, so their type is Any;"
    " set 'additionalProperties' to false or to a schema",
}

MAX_STEPS: Final = 200_000
"""Far more than a schema of the size a spec may have needs, unless its parts contain each other again and again."""


class TooManySteps(Exception):
    """Flattening would take too long."""


class Notes:
    """Mistakes, findings and keywords left to the validator, each with its pointer."""

    def __init__(self) -> None:
        self.problems: list[tuple[str, str]] = []
        self.findings: list[tuple[str, str]] = []
        self.losses: list[tuple[Loss, str]] = []
        self.enforced: list[tuple[str, str]] = []
        self._steps = 0

    def step(self, pointer: str, count: int = 1) -> None:
        """Counts work; too much of it is a mistake of the schema and ends the run."""
        self._steps += count
        if self._steps > MAX_STEPS:
            self.problem(
                f"with its references and 'allOf' expanded, this schema has more than {MAX_STEPS} parts;"
                " simplify it, or exclude the tool",
                pointer,
            )
            raise TooManySteps

    def problem(self, text: str, pointer: str) -> Schema:
        """Notes what stops generation; returns the schema that takes its place."""
        if (text, pointer) not in self.problems:
            self.problems.append((text, pointer))
        return {}

    def finding(self, text: str, pointer: str) -> None:
        """Notes an inconsistency of the schema that does not stop generation."""
        if (text, pointer) not in self.findings:
            self.findings.append((text, pointer))

    def lose(self, loss: Loss, pointer: str, word: str = "", *, is_reported: bool = False) -> Schema:
        """Notes that a type says less than the schema here, which is a finding; returns the flat schema of any value.

        :param is_reported: a finding says so already.
        """
        if (loss, pointer) not in self.losses:
            self.losses.append((loss, pointer))
            if not is_reported:
                self.finding(_SENTENCES[loss].format(word), pointer)
        return {}

    def enforce(self, word: str, pointer: str) -> Schema:
        """Notes that the types accept more than the schema here; returns the flat schema of any value."""
        self.enforced.append((word, pointer))
        return {}
