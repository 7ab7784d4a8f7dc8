"""Mistakes in the schemas of a spec that stop generation, and inconsistencies that do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.codegen.schema.document import Document
from toolkit.codegen.schema.flatten import flatten
from toolkit.schema.checks import estimate_tokens, find_misspelt_hints, find_misspelt_keywords, lint_spec
from toolkit.schema.places import locate
from toolkit.schema.problems import Finding, extend_pointer
from toolkit.schema.spec import ToolSpec

if TYPE_CHECKING:
    from toolkit.adapters.lint import Target


def schema_mistakes(spec: ToolSpec) -> list[Finding]:
    """Why a tool's schemas cannot become types."""
    return [
        Finding(message, spec.source, extend_pointer(place, pointer))
        for place, _, mistakes in _flatten_schemas(spec)
        for message, pointer in mistakes
    ]


def schema_findings(spec: ToolSpec) -> Iterator[Finding]:
    """Mistakes and other findings with their pointers, in the order of the schemas."""
    for place, document, mistakes in _flatten_schemas(spec):
        for message, pointer in (*mistakes, *document.findings):
            yield Finding(message, spec.source, extend_pointer(place, pointer))


def imported_findings(spec: ToolSpec, count_tokens: Callable[[str], int] = estimate_tokens) -> list[Finding]:
    """What the author of an imported tool can improve: the reader of the project cannot."""
    found = [
        Finding(message, spec.source, extend_pointer(f"{spec.pointer}/{key}", pointer))
        for key, schema in (("inputSchema", spec.input_schema), ("outputSchema", spec.output_schema))
        for message, pointer in find_misspelt_keywords(schema, in_yaml=False)
    ]
    found += [
        Finding(message, spec.source, extend_pointer(f"{spec.pointer}/annotations", pointer))
        for message, pointer in find_misspelt_hints(spec.annotations)
    ]
    reported = {finding.pointer for finding in found}  # the same mistake as below, with the way out
    found += [
        Finding(message, spec.source, extend_pointer(place, pointer))
        for place, document, _ in _flatten_schemas(spec)
        for message, pointer in document.findings
        if extend_pointer(place, pointer) not in reported
    ]
    return [*found, *lint_spec(spec, count_tokens)]


def _flatten_schemas(spec: ToolSpec) -> Iterator[tuple[str, Document, list[tuple[str, str]]]]:
    """Each schema of a tool that becomes types: its pointer, its document, and its mistakes."""
    output = spec.output_schema if spec.own_output is None else None
    for key, schema in (("inputSchema", spec.input_schema), ("outputSchema", output)):
        if schema is not None:
            yield f"{spec.pointer}/{key}", *flatten(schema, "X", is_input=key == "inputSchema")


# ----------------------------------------------------------------------------------------------------------------------
# What ``toolkit lint`` reports: findings about specs, and what a provider would do to their tools.


@dataclass(frozen=True, slots=True)
class LintRow:
    """A finding; for a provider also the tool and the effect on it."""

    finding: Finding
    tool: str = ""
    effect: str = ""

    def __str__(self) -> str:
        if not self.tool:
            return str(self.finding)
        return str(replace(self.finding, message=f"{self.tool}: {self.effect}: {self.finding.message}"))

    def as_json(self) -> dict[str, Any]:
        effect = {"tool": self.tool, "effect": self.effect} if self.tool else {}
        return {**effect, **self.finding.as_json()}


def find_in_own(specs: Sequence[ToolSpec], count_tokens: Callable[[str], int]) -> list[LintRow]:
    """What the reader can change: everything in specs of the project, and imported tools that cannot be generated."""
    own = [spec for spec in specs if spec.origin is None]
    found = [finding for spec in own for finding in schema_findings(spec)]
    found += [finding for spec in specs if spec.origin is not None for finding in schema_mistakes(spec)]
    found += [finding for spec in own for finding in lint_spec(spec, count_tokens)]
    return list(map(LintRow, found))


def find_in_imported(specs: Sequence[ToolSpec], count_tokens: Callable[[str], int]) -> dict[str, list[LintRow]]:
    """What the authors of imported tools can improve, by the name of the import."""
    found: dict[str, list[LintRow]] = {}
    for spec in specs:
        if spec.origin is not None:
            found.setdefault(spec.origin.name, []).extend(map(LintRow, imported_findings(spec, count_tokens)))
    return found


def find_for(specs: Sequence[ToolSpec], target: Target) -> list[LintRow]:
    """What a provider does to the tools."""
    return [row for spec in specs for row in _find_for_tool(spec, target)]


def locate_rows(rows: Sequence[LintRow], base: Path) -> list[LintRow]:
    """The same rows with lines and columns."""
    findings = locate([row.finding for row in rows], base)
    return [replace(row, finding=finding) for row, finding in zip(rows, findings, strict=True)]


def _find_for_tool(spec: ToolSpec, target: Target) -> Iterator[LintRow]:
    from toolkit.adapters.lint import lint_for
    from toolkit.wire.call import JsonObject
    from toolkit.wire.definition import ToolDefinition

    schema = JsonObject(dict[str, object](spec.input_schema))
    for remark in lint_for(target, ToolDefinition(spec.wire_name, spec.long_description or spec.description, schema)):
        pointer = extend_pointer(spec.pointer, remark.pointer)
        yield LintRow(Finding(remark.message, spec.source, pointer), spec.wire_name, remark.effect)
