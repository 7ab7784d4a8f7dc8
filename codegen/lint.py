"""Mistakes in the schemas of a spec that stop generation, and inconsistencies that do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from toolkit.codegen.schema.document import Document
from toolkit.codegen.schema.flatten import flatten
from toolkit.schema.checks import find_misspelt_hints, find_misspelt_keywords
from toolkit.schema.problems import Finding, extend_pointer
from toolkit.schema.spec import ToolSpec
from toolkit.spec.lint import estimate_tokens, lint_spec


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
