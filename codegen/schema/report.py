"""What a walk over a schema notes on its way, so that one run tells everything."""

from __future__ import annotations

from typing import Final

from toolkit.codegen.schema.references import Schema

MAX_STEPS: Final = 200_000
"""Far beyond what a schema of the size a spec may have needs, unless its parts take each other in again and again."""


class TooManySteps(Exception):
    """The walk would not end in a time anybody waits."""


class Notes:
    """Mistakes, findings and words left to the validator, each with its pointer."""

    def __init__(self) -> None:
        self.problems: list[tuple[str, str]] = []
        self.findings: list[tuple[str, str]] = []
        self.enforced: list[tuple[str, str]] = []
        self._steps = 0

    def step(self, pointer: str, count: int = 1) -> None:
        """Counts work; too much of it is a mistake of the schema, and ends the walk."""
        self._steps += count
        if self._steps > MAX_STEPS:
            words = (
                f"written out, with its references and 'allOf' in place, this schema has more than {MAX_STEPS} parts;"
                " make it smaller, or leave the tool out"
            )
            self.problem(words, pointer)
            raise TooManySteps

    def problem(self, text: str, pointer: str) -> Schema:
        """Notes what stops generation; in its place anything goes."""
        if (text, pointer) not in self.problems:
            self.problems.append((text, pointer))
        return {}

    def finding(self, text: str, pointer: str) -> None:
        """Notes what the schema says wrongly of itself, and was read as honestly as it can be."""
        if (text, pointer) not in self.findings:
            self.findings.append((text, pointer))

    def enforce(self, word: str, pointer: str) -> Schema:
        """Notes that the types say less than the schema here; the type of what cannot be told at all is any value."""
        self.enforced.append((word, pointer))
        return {}
