"""The flat form of a schema, from which its classes are written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from toolkit.errors import GenerationError
from toolkit.schema.accepts import compile_pattern, has_type
from toolkit.schema.keywords import (
    ANNOTATIONS,
    ASSERTIONS,
    TYPE_WORDS,
    TYPES,
    Schema,
    for_linear_engine,
    map_children,
    subschemas,
    types_of,
    unknown_type,
)

# ----------------------------------------------------------------------------------------------------------------------
# What flattening a schema reports, so that one run reports everything.


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
# What the author of a schema called a type.


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


# ----------------------------------------------------------------------------------------------------------------------
# What the generator does with each JSON Schema keyword, draft-07 to 2020-12. A keyword in no row is an annotation.
#
# ``TYPED`` keywords shape the generated types and are enforced by them. ``ENFORCED`` keywords express what types cannot: they
# are judged at run time by ``toolkit.schema.enforce``, on the wire form of a value that its types have accepted already.
# ``ANNOTATION`` keywords are kept in the definition that the model reads and have no other effect. ``REFUSED`` keywords stop
# generation with their sentence. Nothing is dropped silently: a typed keyword in a place where its type cannot show it, such
# as a limit without a type, is enforced there.

TYPED: Final = frozenset(
    {
        "$defs", "$ref", "additionalProperties", "allOf", "anyOf", "const", "default", "definitions", "enum",
        "exclusiveMaximum", "exclusiveMinimum", "items", "maxItems", "maxLength", "maximum", "minItems", "minLength",
        "minimum", "multipleOf", "oneOf", "pattern", "properties", "required", "type",
    }
)  # fmt: skip

ENFORCED: Final = frozenset(
    {
        "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef", "additionalItems", "contains",
        "dependencies", "dependentRequired", "dependentSchemas", "else", "if", "maxContains", "maxProperties", "minContains",
        "minProperties", "not", "patternProperties", "prefixItems", "propertyNames", "then", "unevaluatedItems",
        "unevaluatedProperties", "uniqueItems",
    }
)  # fmt: skip

ANNOTATION: Final = (
    (ANNOTATIONS - {"default"})
    | {"$comment", "$id", "$schema", "$vocabulary"}
    | {"discriminator", "externalDocs", "nullable", "xml"}
)

_RUNS_CODE: Final = "it can name Python code to import, and a spec is data"

REFUSED: Final[dict[str, str]] = {
    "customBasePath": _RUNS_CODE,
    "customTypePath": _RUNS_CODE,
    "default_factory": _RUNS_CODE,
}

LIMITS: Final[dict[str, tuple[str, ...]]] = {
    name: tuple(word for word in words if word in TYPED) for name, words in TYPE_WORDS.items()
}
"""Which typed keywords say something about which type; next to another type they have no effect, as in JSON Schema."""


def refusal(keyword: str) -> str | None:
    """Why this keyword stops generation, or None."""
    return _RUNS_CODE if keyword.startswith("x-python") else REFUSED.get(keyword)


def is_stray_property(word: str, value: object) -> bool:
    """Whether a word that JSON Schema does not know holds a schema: a property that is not in ``properties``."""
    is_unknown = word not in TYPED | ENFORCED | ANNOTATION and not word.startswith("x-")
    return is_unknown and isinstance(value, dict) and isinstance(value.get("type"), str)


def has_effect(word: str, schema: Schema) -> bool:
    """Whether an enforced keyword can refuse anything in its schema.

    >>> has_effect("uniqueItems", {"uniqueItems": False}), has_effect("then", {"then": {"type": "null"}})
    (False, False)
    >>> has_effect("propertyNames", {"propertyNames": {"type": "string"}})
    False
    """
    value = schema[word]
    if word in _ONLY_BESIDE and not any(other in schema for other in _ONLY_BESIDE[word]):
        return False
    if word == "propertyNames" and isinstance(value, dict) and value.get("type") == "string":
        return any(other in ASSERTIONS and other != "type" for other in value)
    return value not in _WITHOUT_EFFECT.get(word, (True, {}))


_ONLY_BESIDE: Final = {
    "additionalItems": ("items",),
    "else": ("if",),
    "if": ("then", "else"),
    "maxContains": ("contains",),
    "minContains": ("contains",),
    "then": ("if",),
}
_WITHOUT_EFFECT: Final[dict[str, tuple[object, ...]]] = {
    "dependencies": ({},),
    "dependentRequired": ({},),
    "dependentSchemas": ({},),
    "minProperties": (0,),
    "not": (False,),
    "contains": (),
    "maxContains": (),
    "maxProperties": (),
    "minContains": (),
    "prefixItems": ([],),
    "uniqueItems": (False,),
}


# ----------------------------------------------------------------------------------------------------------------------
# The schema that is judged at run time: the spec's own, without prose, checked to be one that the validator takes.

_PROSE: Final = frozenset(
    {"$comment", "default", "deprecated", "description", "example", "examples", "readOnly", "title", "writeOnly"}
)
MAX_PATTERNS: Final = 500
"""Each may take megabytes once it is compiled."""

_TUPLE: Final = (
    "'items' is a list, as in drafts before 2020-12: write 'prefixItems' instead, or name the draft,"
    ' such as "$schema": "http://json-schema.org/draft-07/schema#"'
)
_ELSEWHERE: Final = re.compile(r"Resource ('.*?') is not present in a registry")


def enforced_text(schema: Schema) -> str:
    """The schema as JSON text for ``toolkit.schema.enforce``."""
    return json.dumps(_without_prose(schema), ensure_ascii=False, separators=(",", ":"))


def mistake_in(schema: Schema) -> str | None:
    """Why the validator does not take a schema, or None: a reference to elsewhere, a pattern that is not linear, …"""
    patterns = set(_patterns(schema))
    if len(patterns) > MAX_PATTERNS:
        return f"it has {len(patterns)} different patterns; at most {MAX_PATTERNS} are allowed"
    from toolkit.schema.enforce import new_validator  # with pydantic, which most schemas do not need here

    try:
        new_validator(_without_prose(schema))
    except ImportError:
        raise GenerationError("generation needs jsonschema-rs: pip install 'typed-toolkit[codegen]'") from None
    except ValueError as error:
        return _explain(error)
    return None


def usual_mistakes(schema: Schema) -> list[tuple[str, str]]:
    """Mistakes with a known way out in a schema that the validator does not take, each with its pointer."""
    found = []
    is_current = "2020-12" in str(schema.get("$schema", "2020-12"))
    for pointer, node in subschemas(schema):
        if is_current and isinstance(node.get("items"), list):
            found.append((_TUPLE, f"{pointer}/items"))
        types = types_of(node) or ()
        if any(one not in TYPES for one in types):
            found.append((unknown_type(types), f"{pointer}/type"))
    return found


def _patterns(node: object) -> Iterator[str]:
    """All patterns, also in places that only a reference leads to."""
    if isinstance(node, list):
        for item in node:
            yield from _patterns(item)
    elif isinstance(node, dict):
        for word, value in node.items():
            if word == "pattern" and isinstance(value, str):
                yield value
            elif word == "patternProperties" and isinstance(value, dict):
                yield from value
            yield from _patterns(value)


def _explain(error: ValueError) -> str:
    message = str(error).splitlines()[0][:300]
    away = _ELSEWHERE.match(message)
    if away is not None:
        return f"it refers to {away[1]}, but nothing is read from elsewhere; move that schema to '$defs'"
    place = "".join(f"/{part}" for part in getattr(error, "instance_path", ()))
    return f"{message} ({place})" if place else message


def is_valid(schema: object, root: Schema, value: object) -> bool:
    """Whether a value fits a part of a schema, whose references lead into the whole."""
    from toolkit.schema.enforce import new_validator

    whole: Schema = {word: root[word] for word in ("$defs", "definitions", "$schema") if word in root}
    try:
        return new_validator({**whole, "allOf": [_without_prose(schema)]}).is_valid(value)
    except ValueError:
        return False


def _without_prose(node: Any, pointer: str = "") -> Any:
    """A schema without its prose; no pointer leads through prose."""
    if not isinstance(node, dict):
        return node
    kept = {word: value for word, value in node.items() if word not in _PROSE and not word.startswith("x-")}
    return map_children(kept, _without_prose)


# ----------------------------------------------------------------------------------------------------------------------
# Limits next to a type: which are sound, and which the type's own engine cannot judge.


def typed_limits(kind: str, schema: Schema, pointer: str, notes: Notes) -> Schema:
    """The limits next to a type; a wrong one is reported and left out, so that defaults are judged by sound ones only."""
    found: Schema = {}
    for word in LIMITS[kind]:
        if word in schema and word != "items":
            mistake = mistake_in_limit(word, schema[word], kind)
            if mistake is not None:
                notes.problem(mistake, f"{pointer}/{word}")
            elif is_typed(word, schema[word], kind):
                found[word] = for_linear_engine(schema[word]) if word == "pattern" else schema[word]
            else:
                notes.enforce(word, pointer)
    if nothing_fits := contradiction(found):
        notes.finding(nothing_fits, pointer)
    return found


def mistake_in_limit(word: str, value: Any, kind: str) -> str | None:
    """What is wrong with a limit, or None."""
    if word == "pattern":
        return mistake_in_pattern(value)
    if word in ("minLength", "maxLength", "minItems", "maxItems"):
        fits = has_type(value, "integer") and 0 <= value <= 2**53
        return None if fits else f"{word!r} must be an integer of at least 0"
    if not has_type(value, "number"):
        return f"{word!r} must be a number"
    if word == "multipleOf" and value <= 0:
        return "'multipleOf' must be greater than 0"
    return None


def is_typed(word: str, value: Any, kind: str) -> bool:
    """Whether a sound limit can be written into a type; pydantic-core keeps numbers in 64 bits."""
    if word == "pattern":
        return compile_pattern(value) is not None
    if word == "multipleOf":
        return 2**-63 <= value <= 2**63 and (kind == "number" or value == int(value))
    return word in ("minLength", "maxLength", "minItems", "maxItems") or abs(value) <= 2**63


_PAIRS: Final = (("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems"))


def contradiction(limits: Mapping[str, Any]) -> str | None:
    """The sentence about sound limits that leave nothing between them, or None.

    >>> contradiction({"minLength": 3, "maxLength": 2})
    "no value is valid: 'minLength' is greater than 'maxLength'"
    """
    for least, most in _PAIRS:
        if least in limits and most in limits and limits[least] > limits[most]:
            return f"no value is valid: {least!r} is greater than {most!r}"
    return None


def mistake_in_pattern(pattern: object) -> str | None:
    if not isinstance(pattern, str):
        return "'pattern' must be a string"
    if compile_pattern(pattern) is not None or mistake_in({"pattern": pattern}) is None:
        return None
    return (
        "'pattern' cannot be compiled: check its brackets and escapes; lookaround and back-references are not supported"
    )


# ----------------------------------------------------------------------------------------------------------------------
# The ``format`` of a schema: a word in the docstring, and with ``formats = "rich"`` a type of its own.

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
        target = lookup(node["$ref"].rpartition("/")[2])
        node = target if target is not None and "$ref" not in target else {}
    if isinstance(node.get("format"), str):
        yield node["format"]
    for branch in node.get("anyOf", ()):
        yield from _formats(branch, lookup)
