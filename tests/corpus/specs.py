"""Loads the shared tool specs and generates their models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.modules import documents
from toolkit.codegen.package.models import render_models
from toolkit.codegen.schema.document import Document
from toolkit.errors import SetupError
from toolkit.schema.spec import ToolSpec
from toolkit.schema.spec_files import load_spec_text

FILES = ("bfcl.jsonl", "cookbooks.jsonl", "mcp.jsonl", "openapi_ops.jsonl")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome for one shared spec: the text of its models and their documents, or the first reason it was refused."""

    key: str
    text: str | None
    refused_by: str | None
    reason: str | None
    spec: ToolSpec | None = None
    documents: tuple[Document, Document | None] | None = None


def rows(corpus: Path, file: str) -> Iterator[dict[str, Any]]:
    with (corpus / "tool_specs" / file).open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def outcome(row: dict[str, Any]) -> Outcome:
    """Loads and generates one spec."""
    keys = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
    definition = {key: row[key] for key in keys if row.get(key) is not None}
    try:
        spec = load_spec_text(json.dumps(definition), "row.json", None)[0]
    except SetupError as error:
        return Outcome(row["key"], None, "loader", _class(str(error)))
    try:
        flat = documents(spec.input_schema, spec.output_schema)
        return Outcome(row["key"], render_models("x.json", "X", "A tool.", *flat), None, None, spec, flat)
    except SetupError as error:
        return Outcome(row["key"], None, "generator", _class(str(error)))


def _class(text: str) -> str:
    """The first problem, without its place and without the names in it."""
    import re

    first = re.sub(r"^[\w.]+(:\d+:\d+)?: | \(/\S*\)$", "", text.splitlines()[0])
    return re.sub(r"names '.*?'", "names …", first)[:110]
