"""What each provider refuses, loses or moves of a tool's definition, known without a request.

>>> from toolkit import ToolDefinition
>>> [remark.effect for remark in lint_for("openai", ToolDefinition("math.add", "Add.", {"type": "object"}))]
['renamed']
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from toolkit.adapters.anthropic.codec import encode_tools as encode_for_anthropic
from toolkit.adapters.gemini.codec import sent_name as name_for_gemini
from toolkit.adapters.gemini.schema import to_openapi
from toolkit.adapters.ollama.codec import encode_tools as encode_for_ollama
from toolkit.adapters.openai_chat.codec import sent_name as name_for_openai
from toolkit.adapters.strict import ANTHROPIC, StrictReceipt, to_strict
from toolkit.adapters.strict.rules import takes_pattern
from toolkit.adapters.values import JsonDict
from toolkit.schema.keywords import join_pointer, subschemas
from toolkit.wire.definition import ToolDefinition

__all__ = ["TARGETS", "Effect", "Remark", "Target", "lint_for"]
Target: TypeAlias = Literal["openai", "anthropic", "gemini", "ollama"]
TARGETS: Final[tuple[Target, ...]] = get_args(Target)
Effect: TypeAlias = Literal["refused", "renamed", "not strict", "moved", "lost", "reshaped", "loosened"]
"""``refused``: a request with it fails. ``renamed``: another name is sent, which the toolkit maps back. ``not strict``:
strict mode cannot carry it, so it is sent without. ``moved``: only in the description. ``lost``: not sent at all.
``reshaped``: requested in another form, and turned back. ``loosened``: the provider lets more pass than the schema allows,
until the tool itself checks."""
SCHEMA: Final = "/inputSchema"
MAX_DESCRIPTION: Final = 1_024
_NOT_AT_OPENAIS_ROOT: Final = ("anyOf", "oneOf", "allOf", "enum", "not")
_KEY: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_NOT_AT_ANTHROPICS_ROOT: Final = ("anyOf", "oneOf", "allOf")
_EFFECTS: Final[dict[str, tuple[Effect, str]]] = {
    "moved": ("moved", "only in the description for models without JSON Schema"),
    "loosened": ("loosened", "less exact for models without JSON Schema"),
    "lost": ("lost", "not sent to models without JSON Schema"),
}
ROOT_FIELDS: Final = frozenset({"type", "$defs", "items", "required", "properties"})
PROPERTY_FIELDS: Final = frozenset({"type", "items", "description", "enum"})
"""What the client's types have; below ``items`` and ``$defs`` everything is kept."""
# Words that say nothing about values.
_SILENT: Final = frozenset({"$schema", "$id", "$comment", "title"})


class Remark(NamedTuple):
    """What becomes of one place of a definition; ``pointer`` leads into the tool's spec."""

    effect: Effect
    pointer: str
    message: str


# -- OpenAI, with strict mode and without --------------------------------------------------------------------------------


def lint_openai(definition: ToolDefinition) -> list[Remark]:
    remarks = []
    name = name_for_openai(definition.name)
    if name != definition.name:
        remarks.append(Remark("renamed", "/name", f"sent as {name!r}"))
    if len(definition.description) > MAX_DESCRIPTION:
        much = f"{len(definition.description)} characters, and some models refuse more than {MAX_DESCRIPTION}"
        remarks.append(Remark("refused", "/description", f"the description has {much}"))
    receipt = to_strict(definition.parameters)
    remarks += strict_remarks(receipt)
    return remarks if receipt.is_strict else remarks + _without_strict(definition.parameters)


def _without_strict(schema: JsonDict) -> list[Remark]:
    """What is refused in a schema that is sent as it is."""
    remarks = [
        Remark("refused", f"{SCHEMA}/{word}", f"the root must not have {word!r}")
        for word in _NOT_AT_OPENAIS_ROOT
        if word in schema
    ]
    for pointer, node in subschemas(schema):
        if node.get("type") == "array" and "items" not in node:
            remarks.append(Remark("refused", f"{SCHEMA}{pointer}", "an array must have 'items'"))
        pattern = node.get("pattern")
        if isinstance(pattern, str) and not takes_pattern(pattern):
            what = "newer models refuse a pattern with lookaround or back-references"
            remarks.append(Remark("refused", f"{SCHEMA}{join_pointer(pointer, 'pattern')}", what))
    return remarks


# -- Anthropic, which takes JSON Schema of draft 2020-12 with a few exceptions -------------------------------------------


def lint_anthropic(definition: ToolDefinition) -> list[Remark]:
    [sent] = encode_for_anthropic([definition])
    remarks = []
    if sent["name"] != definition.name:
        remarks.append(Remark("renamed", "/name", f"sent as {sent['name']!r}"))
    schema = sent["input_schema"]
    if schema["type"] != "object":
        remarks.append(Remark("refused", f"{SCHEMA}/type", "the root must be of type 'object'"))
    for word in _NOT_AT_ANTHROPICS_ROOT:
        if word in schema:
            remarks.append(Remark("refused", f"{SCHEMA}/{word}", f"the root must not have {word!r}"))
    names = schema.get("properties")
    for name in names if isinstance(names, dict) else ():
        if not _KEY.fullmatch(name):
            place = join_pointer(f"{SCHEMA}/properties", name)
            what = "parameter names must have 1 to 64 characters: letters, digits, '_', '.' and '-'"
            remarks.append(Remark("refused", place, what))
    for pointer, node in subschemas(schema):
        remarks += [
            Remark("refused", f"{SCHEMA}{join_pointer(pointer, word)}", why) for word, why in _not_of_2020(node)
        ]
    return remarks + strict_remarks(to_strict(definition.parameters, ANTHROPIC))


def _not_of_2020(node: JsonDict) -> Iterator[tuple[str, str]]:
    """Keywords as older drafts write them, which make the schema invalid in draft 2020-12."""
    old: dict[str, Any] = {
        "items": list,
        "exclusiveMinimum": bool,
        "exclusiveMaximum": bool,
        "required": bool,
    }
    for word, kind in old.items():
        if isinstance(node.get(word), kind):
            yield word, f"{word!r} is written as in an older draft; draft 2020-12 is required"


# -- Gemini, whose older models take a subset of OpenAPI instead of JSON Schema ------------------------------------------


def lint_gemini(definition: ToolDefinition) -> list[Remark]:
    remarks = []
    name = name_for_gemini(definition.name)
    if name != definition.name:
        remarks.append(Remark("renamed", "/name", f"sent as {name!r}"))

    def report(pointer: str, keyword: str, effect: str) -> None:
        word, what = _EFFECTS[effect]
        place = join_pointer(pointer, keyword) if keyword else pointer
        text = f"{quote(keyword)} is {what}" if keyword else f"the inside of a schema that contains itself is {what}"
        remarks.append(Remark(word, f"{SCHEMA}{place}", text))

    to_openapi(definition.parameters, report)
    return remarks


# -- Ollama, whose client copies parameters into its own types and drops what they have no field for ---------------------


def lint_ollama(definition: ToolDefinition) -> list[Remark]:
    [sent] = encode_for_ollama([definition])
    remarks = []
    name = sent["function"]["name"]
    if name != definition.name:
        remarks.append(Remark("renamed", "/name", f"sent as {name!r}"))
    schema: JsonDict = sent["function"]["parameters"]
    if schema.get("type", "object") != "object":
        remarks.append(Remark("refused", f"{SCHEMA}/type", "the root must be of type 'object'"))
    remarks += _list_dropped(schema, SCHEMA, ROOT_FIELDS)
    names = schema.get("properties")
    for name, inner in names.items() if isinstance(names, dict) else ():
        place = join_pointer(f"{SCHEMA}/properties", name)
        if isinstance(inner, dict):
            remarks += _list_dropped(inner, place, PROPERTY_FIELDS)
        else:
            remarks.append(Remark("refused", place, "a property must be an object"))
    return remarks


def _list_dropped(schema: JsonDict, pointer: str, fields: frozenset[str]) -> list[Remark]:
    def is_said(word: str, value: Any) -> bool:
        # Objects count as closed anyway.
        return word not in _SILENT and not word.startswith("x-") and (word, value) != ("additionalProperties", False)

    return [
        Remark("lost", join_pointer(pointer, word), f"Ollama's client drops {quote(word)}")
        for word, value in schema.items()
        if word not in fields and is_said(word, value)
    ]


# -- all of them ---------------------------------------------------------------------------------------------------------


def strict_remarks(receipt: StrictReceipt) -> list[Remark]:
    """Why strict mode cannot carry the schema; else what becomes of it there."""
    if not receipt.is_strict:
        return [Remark("not strict", f"{SCHEMA}{pointer}", why) for pointer, why in receipt.problems]
    remarks = []
    for note in receipt.notes:
        place = join_pointer(note.pointer, note.keyword) if note.keyword else note.pointer
        effect = "lost" if note.effect == "dropped" else note.effect
        what = f"{quote(note.keyword)} in strict mode: {note.what}" if note.keyword else f"in strict mode, {note.what}"
        remarks.append(Remark(effect, f"{SCHEMA}{place}", what))
    return remarks


def quote(word: str) -> str:
    """A keyword or a name inside a message: quoted, on one line, of bounded length."""
    return repr(word if len(word) <= 80 else f"{word[:80]}...")


_LINTS: Final[dict[Target, Callable[[ToolDefinition], list[Remark]]]] = {
    "openai": lint_openai,
    "anthropic": lint_anthropic,
    "gemini": lint_gemini,
    "ollama": lint_ollama,
}


def lint_for(target: Target, definition: ToolDefinition) -> list[Remark]:
    """The remarks on one definition, each once, in the order of its schema."""
    return list(dict.fromkeys(_LINTS[target](definition)))
