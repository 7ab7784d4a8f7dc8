"""What ``tools/list`` answers: the tools that the policy may allow, with both schemas and their hints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mcp_types import Tool, ToolAnnotations
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolkit.guard.policy.hints import effective_hints
from toolkit.runtime.call.offers import define, offered_tools
from toolkit.runtime.call.view import View, core_of
from toolkit.runtime.catalog.schema_marks import strip_marks
from toolkit.serve.setup.presets import says_what_it_does

if TYPE_CHECKING:
    from toolkit.runtime.catalog.catalog import ToolInfo
    from toolkit.wire.definition import ToolDefinition


def list_tools(toolkit: View, protocol_version: str) -> list[Tool]:
    """The tools to offer, in catalog order."""
    core = core_of(toolkit)
    rows = core.catalog.definitions
    return [_as_mcp(define(core, info), info, rows[info.name], protocol_version) for info in offered_tools(core)]


def _as_mcp(definition: ToolDefinition, info: ToolInfo, row: Mapping[str, Any], protocol_version: str) -> Tool:
    return Tool(
        name=definition.name,
        title=row["title"],
        description=definition.description,
        input_schema=dict(definition.parameters),
        output_schema=served_output_schema(row, protocol_version),
        annotations=_annotations(info, row["annotations"] or {}),
    )


def served_output_schema(row: Mapping[str, Any], protocol_version: str) -> dict[str, Any] | None:
    """The output schema of a tool, if it has one that the client's revision of the protocol can carry.

    Until 2025-11-25 outputs are objects. Lists and plain values are sent there as text alone.
    """
    schema = row["outputSchema"]
    if schema is None or protocol_version not in MODERN_PROTOCOL_VERSIONS and schema.get("type") != "object":
        return None
    stripped: dict[str, Any] = strip_marks(schema)
    return stripped


def _annotations(info: ToolInfo, declared: Mapping[str, Any]) -> ToolAnnotations:
    """What clients may show or ask about: what a tool declares, and what its permissions say where it declares nothing.

    A tool that needs the permission to write is never shown as read-only. About a tool that declares nothing at all nothing
    is said, and the protocol assumes the worst.
    """
    if not declared and not says_what_it_does(info, declared):
        return ToolAnnotations()
    honest = {**declared, "readOnlyHint": False} if "write" in info.required else declared
    hints = effective_hints(honest, (*info.required, *info.optional))
    only_reads = "not-read-only" not in hints
    return ToolAnnotations(
        title=declared.get("title"),
        read_only_hint=only_reads if says_what_it_does(info, declared) else None,
        destructive_hint="destructive" in hints,
        idempotent_hint="not-idempotent" not in hints,
        open_world_hint="open-world" in hints,
    )
