"""Advice on specs that load without mistakes but are hard for a model to use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from toolkit.jsonschema.walk import subschemas
from toolkit.schema.problems import Finding, below, extend_pointer, quote
from toolkit.schema.spec import Json, ToolSpec

MAX_DESCRIPTION_TOKENS: Final = 40


def estimate_tokens(text: str) -> int:
    """A quarter of the UTF-8 bytes, rounded up."""
    return -(-len(text.encode()) // 4)


def lint_spec(spec: ToolSpec, count_tokens: Callable[[str], int] = estimate_tokens) -> list[Finding]:
    """What to improve in ``spec``, in the order of the file."""
    places = [
        *_lint_description(spec, count_tokens),
        *_find_undescribed(spec.input_schema, below(spec.pointer, "inputSchema")),
        *_lint_annotations(spec),
    ]
    return [Finding(message, spec.source, pointer) for message, pointer in places]


def _lint_description(spec: ToolSpec, count_tokens: Callable[[str], int]) -> Iterator[tuple[str, str]]:
    pointer = below(spec.pointer, "description")
    if not spec.description.strip():
        yield "the tool has no description", spec.pointer
        return
    tokens = count_tokens(spec.description)
    if tokens > MAX_DESCRIPTION_TOKENS:
        limit = f"keep it to {MAX_DESCRIPTION_TOKENS} and move the rest to a 'descriptionFile'"
        yield f"the description has {tokens} tokens: {limit}", pointer
    if "```" in spec.description or any(line.lstrip().startswith(">>>") for line in spec.description.splitlines()):
        yield "the description contains code: describe what the tool does in plain language", pointer


def _find_undescribed(schema: Json, pointer: str) -> Iterator[tuple[str, str]]:
    """Every property without a description, nested ones too."""
    for place, node in subschemas(schema):
        properties = node.get("properties")
        for name, inner in properties.items() if isinstance(properties, dict) else ():
            if not _is_described(inner):
                yield (
                    f"the property {quote(name)} has no description",
                    below(extend_pointer(pointer, f"{place}/properties"), name),
                )


def _is_described(schema: Json) -> bool:
    description = schema.get("description") if isinstance(schema, dict) else None
    return isinstance(description, str) and bool(description.strip())


def _lint_annotations(spec: ToolSpec) -> Iterator[tuple[str, str]]:
    changes = [word for word in (*spec.required, *spec.optional) if word in ("write", "execute")]
    if changes and spec.annotations.get("readOnlyHint") is True:
        yield (
            f"'readOnlyHint' is true for a tool that may {' and '.join(changes)}",
            below(below(spec.pointer, "annotations"), "readOnlyHint"),
        )
