"""What is weak in the schemas of a spec: what stops generation, and what they say wrongly of themselves."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.schema import flatten
from toolkit.spec.model import ToolSpec
from toolkit.spec.problems import Finding


def schema_findings(spec: ToolSpec) -> Iterator[Finding]:
    """Findings at their pointers, in the order of the schemas."""
    for key, schema in (("inputSchema", spec.input_schema), ("outputSchema", spec.output_schema)):
        if schema is None:
            continue
        place = f"{spec.pointer}/{key}"
        document, problems = flatten(schema, "X", "", is_input=key == "inputSchema")
        for problem in problems:
            message, _, pointer = problem.rpartition(" @ ")
            yield Finding(message, spec.source, place + pointer)
        for message, pointer in document.findings:
            yield Finding(message, spec.source, place + pointer)
