"""One tool spec as plain data, the same whether it was written in YAML or in JSON."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TypeAlias

from toolkit.guard.permission import Permission

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
