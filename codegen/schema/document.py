"""The flat form of a schema, from which its classes are written."""

from __future__ import annotations

from dataclasses import dataclass, field

from toolkit.codegen.schema.naming.name_hint import NameHint
from toolkit.jsonschema.keywords import Schema


@dataclass(slots=True)
class Document:
    """A flat schema: the root, the named objects, and the named scalars and arrays that carry limits."""

    name: str
    root: Schema
    objects: dict[str, Schema] = field(default_factory=dict)
    aliases: dict[str, Schema] = field(default_factory=dict)
    enforced: str | None = None
    """The schema as JSON text, where the types alone would accept more than it does."""
    findings: list[tuple[str, str]] = field(default_factory=list)
    """The schema's inconsistencies, each with its pointer."""
    hints: dict[str, NameHint] = field(default_factory=dict)
    """What the author called the types, by their names here."""

    def nodes(self) -> dict[str, Schema]:
        """Everything that has a name."""
        return {**self.objects, **self.aliases, self.name: self.root}
