"""What a walk over a schema notes on its way, so that one run tells everything."""

from __future__ import annotations

from codegen.references import Schema


class Notes:
    """Mistakes, findings and words left to the validator, each with its pointer."""

    def __init__(self) -> None:
        self.problems: list[tuple[str, str]] = []
        self.findings: list[tuple[str, str]] = []
        self.enforced: list[tuple[str, str]] = []

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
