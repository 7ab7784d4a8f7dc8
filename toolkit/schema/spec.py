"""One tool spec as plain data, the same whether it was written in YAML or in JSON: names, descriptions, limits."""

from __future__ import annotations

import keyword
import math
import os
import posixpath
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from toolkit.errors import SetupError
from toolkit.guard.permission import Permission
from toolkit.schema.problems import clip

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


@dataclass(frozen=True, slots=True)
class SpecExample:
    """One call that is run as a test; exactly one of ``output`` and ``error`` is set."""

    title: str
    arguments: dict[str, Json]
    files: dict[str, str]
    """The workspace before the call: relative path -> text."""
    output: dict[str, Json] | None
    """The part of the output that must match."""
    error: str | None
    """An error code, or the reason of a TOOL_FAILED."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an imported file came from, so that it can be imported again."""

    kind: str
    name: str
    """The import's name in the settings."""
    details: dict[str, Json]
    """What else the importer recorded, for example a server's name and version."""

    def as_json(self) -> dict[str, Json]:
        return {"kind": self.kind, "name": self.name, **self.details}


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool definition: the keys of MCP, and our own."""

    name: str
    title: str | None
    description: str
    input_schema: dict[str, Json]
    output_schema: dict[str, Json] | None
    annotations: dict[str, Json]
    required: tuple[Permission, ...]
    optional: tuple[Permission, ...]
    parallel: bool
    blocking: bool
    examples: tuple[SpecExample, ...]
    source: str
    """The spec file, "/"-separated."""
    pointer: str
    """The tool's JSON pointer in that file: "" for a file of one tool, else like "/tools/3"."""
    description_file: str | None
    """``descriptionFile`` as in the spec: relative to the spec's directory."""
    long_description: str | None
    """The text of that file."""
    rename: str | None
    function: str | None = None
    """``module:function`` if the spec was read from a function."""
    own_output: dict[str, Json] | None = None
    """What that function returns, if its own types can be imported: ``type`` as source text, and its ``modules``."""
    prefix: str = ""
    """Added to the name; declared by the spec's file."""
    origin: Origin | None = None
    """The import that wrote the file; ``name`` is the tool's name at the origin."""
    request: dict[str, Json] | None = None
    """How to call an operation of an OpenAPI document."""
    must_be_named: bool = False
    """Whether a policy must name the tool to allow it: its default does not cover it."""
    wraps_result: bool = False
    """Whether the server wraps what ``output_schema`` describes in ``{"result": ...}``."""

    @property
    def description_source(self) -> str | None:
        """The description file, relative to the same folder as ``source``."""
        if self.description_file is None:
            return None
        return posixpath.normpath(posixpath.join(posixpath.dirname(self.source), self.description_file))

    @property
    def wire_name(self) -> str:
        """The name that models see: ``rename``, else the name with the file's prefix."""
        return self.rename or f"{self.prefix}{self.name}"


# ----------------------------------------------------------------------------------------------------------------------
# Which names a tool may have on the wire, and its name in Python.

NAME_RULE: Final = (
    "a name has 1 to 128 characters: an ASCII letter, a digit or '_' first, then also '.', '/', ':', '-' and spaces; "
    "no '..', and no part like '__init__'"
)
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./ :-]{0,127}")
_PARTS: Final = re.compile(r"[./: -]")


def is_wire_name(name: str) -> bool:
    """Whether a tool may have this name.

    >>> [is_wire_name(name) for name in ("math.factorial", "../x", "__class__")]
    [True, False, False]
    """
    dunder = any(part.startswith("__") and part.endswith("__") for part in _PARTS.split(name))
    return _NAME.fullmatch(name) is not None and ".." not in name and not dunder


def attribute_name(wire: str) -> str:
    """The method name for a tool.

    >>> [attribute_name(name) for name in ("hubspot-list-objects", "math.factorial", "class", "_hidden", "3d")]
    ['hubspot_list_objects', 'math_factorial', 'class_', 'tool_hidden', 'tool_3d']
    """
    name = re.sub(r"\W", "_", wire, flags=re.ASCII)
    if not name[0].isalpha():
        name = "tool_" + name.lstrip("_")
    return f"{name}_" if keyword.iskeyword(name) else name


# ----------------------------------------------------------------------------------------------------------------------
# Long descriptions: files next to specs and modules, with a few placeholders that are filled when a toolkit is built.

MAX_DESCRIPTION_FILE: Final = 256 * 1024
PLACEHOLDERS: Final = ("workspace", "directory", "cwd")


def read_description(folder: Path, name: str) -> str:
    """The text of a description file in or below ``folder``; ``Unreadable`` says what is wrong with it."""
    from toolkit.schema.spec_files import read_below

    return read_below(folder, name, MAX_DESCRIPTION_FILE)


def read_module_description(source: str | None, name: str, owner: str) -> str:
    """The text of a file in or below the folder of a module's source file; no step on the way may be a link."""
    from toolkit.schema.problems import Unreadable, quote

    if source is None or not os.path.isfile(source):
        raise SetupError(f"{owner} was not defined in a file, so it cannot have a description file")
    try:
        text = read_description(Path(os.path.abspath(source)).parent, name)
    except Unreadable as error:
        raise SetupError(f"the description file {quote(name)} of {owner}: {error}") from None
    for problem in placeholder_problems(text):
        raise SetupError(f"the description file {quote(name)} of {owner}: {problem}")
    return text


def placeholder_problems(text: str) -> list[str]:
    """A sentence for each ``${...}`` that is not a known placeholder.

    >>> placeholder_problems("in ${workspace}, as ${user}")
    ["'${user}' is not a placeholder; ${workspace}, ${directory} and ${cwd} are"]
    """
    from toolkit.schema.problems import quote

    # Split, not matched: a pattern would take quadratic time on a text full of unclosed "${".
    pieces = [piece.partition("}") for piece in text.split("${")[1:]]
    unknown = [name for name, closed, _ in pieces if closed and name not in PLACEHOLDERS]
    return [
        f"{quote('${' + name + '}')} is not a placeholder; ${{workspace}}, ${{directory}} and ${{cwd}} are"
        for name in unknown
    ]


def fill_placeholders(text: str, workspace: str) -> str:
    """The text for one toolkit. Every placeholder is its workspace: a tool knows no other directory.

    >>> fill_placeholders("Works in ${workspace}.", "/project")
    'Works in /project.'
    """
    for word in PLACEHOLDERS:
        text = text.replace(f"${{{word}}}", workspace)
    return text


# ----------------------------------------------------------------------------------------------------------------------
# Limits that YAML and JSON texts share: depth, size, numbers, Unicode.

MAX_DEPTH: Final = 100  # of a whole file; a schema has its own, smaller limit in check.py
MAX_JSON_CONTAINERS: Final = 1_000_000
"""Lists and objects in one JSON text. They make reading costly: ``[],`` takes 50 times its size while it is read."""
MAX_YAML_VALUES: Final = 3_000_000
"""Values in one YAML text, keys included; reading a million of them takes about two seconds."""
MAX_DIGITS: Final = 400
TOO_DEEP: Final = f"nested deeper than {MAX_DEPTH} levels"
NOT_UNICODE: Final = "the text contains a lone surrogate, which is not valid Unicode"

_SURROGATE = re.compile("[\ud800-\udfff]")


def is_unicode(text: str) -> bool:
    return text.isascii() or _SURROGATE.search(text) is None


def parse_number(text: str) -> int | float:
    """The value of a decimal number; ``ValueError`` if it is too large, with a sentence that says so.

    >>> parse_number("1e3"), parse_number("-12")
    (1000.0, -12)
    """
    digits = sum(map(str.isdigit, text))
    if digits >= MAX_DIGITS:
        raise ValueError(f"the number has {digits} digits; fewer than {MAX_DIGITS} are allowed")
    if text.lstrip("+-").isdigit():
        return int(text)
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {clip(text)} is too large for a float")
    return value
