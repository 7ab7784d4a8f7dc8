"""The flat form of a schema, from which its classes are written; and what flattening reports.

A flat node is a type, an ``enum``, an ``anyOf`` or a reference to a named node. Every object with properties has a name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from toolkit.schema.keywords import Schema

# ----------------------------------------------------------------------------------------------------------------------
# Reports


class Loss(StrEnum):
    """Why a type says less than its schema; ``lint`` reports each. The values name the reasons in reports.

    Without one of these, a field is ``Any`` only where its schema says nothing: ``tests/corpus/static_meaning.py`` proves it.
    """

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


# ----------------------------------------------------------------------------------------------------------------------
# The document


@dataclass(frozen=True, slots=True)
class NameHint:
    """The author's names for a type; several of a kind, where equal types have become one."""

    titles: tuple[str, ...] = ()
    definitions: tuple[str, ...] = ()
    """Its keys in ``$defs`` or ``definitions``."""

    def __or__(self, other: NameHint) -> NameHint:
        titles, definitions = self.titles + other.titles, self.definitions + other.definitions
        return NameHint(tuple(dict.fromkeys(titles)), tuple(dict.fromkeys(definitions)))


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
            new = {inner for inner in references(self.aliases[pending.pop()]) if inner in self.aliases} - found
            found |= new
            pending += new
        return name in found


# ----------------------------------------------------------------------------------------------------------------------
# Flat nodes

DECLARED_BY_SOME: Final = "x-declared-by-some"
"""Marks a property of a merged union: its type is that of the branches that declare it; others accept any value there.
Its value is the pointer of the first declaration."""

NULL: Final[Schema] = {"type": "null"}
_PREFIX: Final = "#/$defs/"


def name_of(ref: str) -> str:
    """The name of the type that a reference leads to."""
    return ref.removeprefix(_PREFIX)


def reference_to(name: str) -> Schema:
    """The node that stands for a named type."""
    return {"$ref": f"{_PREFIX}{name}"}


def referred_name(node: Schema) -> str | None:
    """The name of the type that a node stands for; None if it is no reference."""
    ref = node.get("$ref")
    return name_of(ref) if isinstance(ref, str) else None


def is_null(node: Schema) -> bool:
    return node.get("type") == "null" or node.get("enum") == [None]


def alternatives(node: Schema) -> list[Schema]:
    """The branches of a union that are not null; any other node is its only alternative."""
    return [branch for branch in node["anyOf"] if not is_null(branch)] if "anyOf" in node else [node]


def sole_name(node: Schema) -> str | None:
    """The type that a node stands for, alone or next to null."""
    rest = alternatives(node)
    return referred_name(rest[0]) if len(rest) == 1 else None


def map_nodes(node: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """A copy of a node: first what is inside it is changed, then the node itself."""
    copy = dict(node)
    for word in ("items", "additionalProperties"):
        if isinstance(node.get(word), dict):
            copy[word] = map_nodes(node[word], change)
    if "properties" in node:
        copy["properties"] = {key: map_nodes(value, change) for key, value in node["properties"].items()}
    if "anyOf" in node:
        copy["anyOf"] = [map_nodes(branch, change) for branch in node["anyOf"]]
    return change(copy)


def references(node: Schema) -> Iterator[str]:
    """The names that a node refers to, in order, repetitions included; not those inside the types that it names."""
    name = referred_name(node)
    if name is not None:
        yield name
    inner = [node.get("items"), node.get("additionalProperties"), *node.get("anyOf", ())]
    for part in (*inner, *node.get("properties", {}).values()):
        if isinstance(part, dict):
            yield from references(part)


# ----------------------------------------------------------------------------------------------------------------------
# Formats: a word in the docstring, and with ``formats = "rich"`` a type such as ``datetime``.

RICH: Final = {
    "date-time": "WireDateTime",
    "date": "WireDate",
    "time": "WireTime",
    "uuid": "WireUUID",
    "uri": "WireUrl",
}
"""The formats that have a lossless Python type, and its name in ``toolkit.generated_support``."""

RICH_TYPE: Final = "richType"
"""Marks a flat node with the name of its type."""

TEXT_TOO: Final = "textToo"
"""False in a marked node where a caller cannot give the text instead."""

_INSIDE: Final = ("items", "additionalProperties")
_LIMITS: Final = ("maxLength", "minLength", "pattern")

Lookup = Callable[[str], Schema | None]


def with_rich_types(document: Document) -> Document:
    """The document, with every text of a known format marked.

    Limits and defaults are about the text, so a text that has any stays a text.
    """
    return replace(
        document,
        root=_mark(document.root),
        objects={name: _mark(node) for name, node in document.objects.items()},
        aliases={name: _mark(node) for name, node in document.aliases.items()},
    )


def _mark(node: Any) -> Any:
    if not isinstance(node, dict) or node.get("default") is not None:
        return node
    marked = {word: _mark(value) if word in _INSIDE else value for word, value in node.items()}
    if "anyOf" in node:
        marked["anyOf"] = [_mark(branch) for branch in node["anyOf"]]
    if "properties" in node:
        marked["properties"] = {name: _mark(value) for name, value in node["properties"].items()}
    if node.get("type") == "string" and node.get("format") in RICH and not any(word in node for word in _LIMITS):
        marked[RICH_TYPE] = RICH[node["format"]]
    return marked


def rich_types_in(node: Any) -> Iterator[str]:
    """The names of all rich types that a marked node uses."""
    if isinstance(node, dict):
        if RICH_TYPE in node and node.get(TEXT_TOO, True):
            yield node[RICH_TYPE]
        for part in (node.get(word) for word in _INSIDE):
            yield from rich_types_in(part)
        for part in (*node.get("anyOf", ()), *node.get("properties", {}).values()):
            yield from rich_types_in(part)


def separate_forms(node: Any) -> list[Any]:
    """What a list or map may hold: rich values or texts, each as a node of its own.

    ``list[UUID] | list[str]`` accepts a caller's ``list[UUID]``; ``list[UUID | str]`` does not.
    """
    if not any(rich_types_in(node)):
        return [node]
    return [_map_marks(node, lambda leaf: {**leaf, TEXT_TOO: False}), _map_marks(node, _without_mark)]


def _without_mark(leaf: Schema) -> Schema:
    return {word: value for word, value in leaf.items() if word != RICH_TYPE}


def _map_marks(node: Any, change: Callable[[Schema], Schema]) -> Any:
    if not isinstance(node, dict):
        return node
    if RICH_TYPE in node:
        return change(node)
    changed = {word: _map_marks(value, change) if word in _INSIDE else value for word, value in node.items()}
    return {**changed, "anyOf": [_map_marks(part, change) for part in node["anyOf"]]} if "anyOf" in node else changed


def described(node: Schema, lookup: Lookup) -> str:
    """The description of a field with its format, for a docstring.

    >>> described({"type": "string", "format": "date", "description": "The first day"}, lambda ref: None)
    'The first day. Format: date.'
    >>> described({"type": "array", "items": {"type": "string", "format": "uuid"}}, lambda ref: None)
    'Format of each item: uuid.'
    """
    text = str(node.get("description", ""))
    notes = []
    for words, word in (("Format", None), ("Format of each item", "items"), ("Format of each value", _INSIDE[1])):
        parts = [node] if word is None else [part.get(word) for part in (node, *node.get("anyOf", ()))]
        names = dict.fromkeys(name for part in parts for name in _formats(part, lookup))
        notes += [f"{words}: {', '.join(names)}."] if names else []
    if not notes or not text.strip():
        return " ".join(notes) or text
    text = text.rstrip()
    if "\n" in text:
        return f"{text}\n\n{' '.join(notes)}"
    return " ".join([text if text.endswith((".", "!", "?", ":", ";", ")")) else f"{text}.", *notes])


def _formats(node: Any, lookup: Lookup) -> Iterator[str]:
    if not isinstance(node, dict):
        return
    if "$ref" in node:
        target = lookup(name_of(node["$ref"]))
        node = target if target is not None and "$ref" not in target else {}
    if isinstance(node.get("format"), str):
        yield node["format"]
    for branch in node.get("anyOf", ()):
        yield from _formats(branch, lookup)
