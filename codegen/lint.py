"""Mistakes in the schemas of a spec that stop generation, and inconsistencies that do not."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.codegen.schema.document import Document
from toolkit.codegen.schema.flatten import flatten
from toolkit.spec.model import ToolSpec
from toolkit.spec.problems import Finding


def schema_mistakes(spec: ToolSpec) -> list[str]:
    """Why a tool's schemas cannot become types, each as ``message @ file:pointer``."""
    return [text for _, _, mistakes in _flatten_schemas(spec) for text in mistakes]


def schema_findings(spec: ToolSpec) -> Iterator[Finding]:
    """Mistakes and other findings with their pointers, in the order of the schemas."""
    for place, document, mistakes in _flatten_schemas(spec):
        for problem in mistakes:
            message, _, pointer = problem.rpartition(f" @ {spec.source}:")
            yield Finding(message, spec.source, pointer)
        for message, pointer in document.findings:
            yield Finding(message, spec.source, place + pointer)


def _flatten_schemas(spec: ToolSpec) -> Iterator[tuple[str, Document, list[str]]]:
    """Each schema of a tool: its pointer, its document, and its mistakes."""
    for key, schema in (("inputSchema", spec.input_schema), ("outputSchema", spec.output_schema)):
        if schema is not None:
            place = f"{spec.pointer}/{key}"
            yield place, *flatten(schema, "X", f"{spec.source}:{place}", is_input=key == "inputSchema")
