"""The flat form of a schema, from which its classes are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from toolkit.codegen.schema.naming.name_hint import NameHint
from toolkit.codegen.schema.report import Loss
from toolkit.jsonschema.keywords import Schema


@dataclass(slots=True)
class Document:
    """A flat schema: the root, the named objects, and aliases: scalars and arrays that carry limits, and recursive unions."""

    name: str
    root: Schema
    objects: dict[str, Schema] = field(default_factory=dict)
    aliases: dict[str, Schema] = field(default_factory=dict)
    recursive: set[str] = field(default_factory=set)
    """The aliases that lead back to themselves, through classes or not."""
    enforced: str | None = None
    """The schema as JSON text, where the types alone would accept more than it does."""
    findings: list[tuple[str, str]] = field(default_factory=list)
    """The schema's inconsistencies, each with its pointer."""
    hints: dict[str, NameHint] = field(default_factory=dict)
    """What the author called the types, by their names here."""

    losses: list[tuple[Loss, str]] = field(default_factory=list)
    """Where its types say less than the schema, and why; each is also one of the findings."""

    def nodes(self) -> dict[str, Schema]:
        """Everything that has a name."""
        return {**self.objects, **self.aliases, self.name: self.root}

    def is_endless(self, name: str) -> bool:
        """Whether an alias holds itself with no class in between, such as a list of texts and lists."""
        found: set[str] = set()
        pending = [name]
        while pending:
            new = {inner for inner in refers_to(self.aliases[pending.pop()]) if inner in self.aliases} - found
            found |= new
            pending += new
        return name in found


def refers_to(node: Schema) -> Iterator[str]:
    """The names in the type of a node, not those inside of what they name."""
    if "$ref" in node:
        yield node["$ref"].rpartition("/")[2]
    inner = [node.get("items"), node.get("additionalProperties"), *node.get("anyOf", ())]
    for part in (*inner, *node.get("properties", {}).values()):
        if isinstance(part, dict):
            yield from refers_to(part)
