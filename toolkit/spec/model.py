"""What one tool spec says, as plain data: the same whether it was written in YAML or in JSON."""

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
    """A part of the output that must be equal."""
    error: str | None
    """An error code, or the reason of a TOOL_FAILED."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an imported file came from, so that it can be imported again."""

    kind: str
    name: str
    """The import's name in the settings."""
    details: dict[str, Json]
    """What else the importer wrote down: a server's name and version, say."""

    def as_json(self) -> dict[str, Json]:
        return {"kind": self.kind, "name": self.name, **self.details}


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool definition: what MCP says of a tool, and what we add to it."""

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
    """``descriptionFile`` as the spec has it: relative to the spec's own directory."""
    long_description: str | None
    """The text of that file."""
    rename: str | None
    function: str | None = None
    """``module:function`` where the spec was read from a function."""
    prefix: str = ""
    """Put before the name by the file it stands in."""
    origin: Origin | None = None
    """Where the file was imported from; ``name`` is the tool's name there."""
    request: dict[str, Json] | None = None
    """How to call an operation of an OpenAPI document."""
    wraps_result: bool = False
    """Whether the server answers ``{"result": ...}`` around what ``output_schema`` describes."""

    @property
    def description_source(self) -> str | None:
        """The description file, named as ``source`` is."""
        if self.description_file is None:
            return None
        return posixpath.normpath(posixpath.join(posixpath.dirname(self.source), self.description_file))

    @property
    def wire_name(self) -> str:
        """The name models see: the file's own behind its prefix, unless ``rename`` gives another."""
        return self.rename or f"{self.prefix}{self.name}"
