"""What flattening a schema reports, so that one run reports everything."""

from __future__ import annotations

from typing import Final

from toolkit.jsonschema.keywords import Schema

MAX_STEPS: Final = 200_000
"""Far more than a schema of the size a spec may have needs, unless its parts contain each other again and again."""


class TooManySteps(Exception):
    """Flattening would take too long."""


class Notes:
    """Mistakes, findings and keywords left to the validator, each with its pointer."""

    def __init__(self) -> None:
        self.problems: list[tuple[str, str]] = []
        self.findings: list[tuple[str, str]] = []
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

    def enforce(self, word: str, pointer: str) -> Schema:
        """Notes that the types accept more than the schema here; returns the flat schema of any value."""
        self.enforced.append((word, pointer))
        return {}
