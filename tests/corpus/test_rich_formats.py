"""Shared specs with rich formats: a value is read and written as it is, or refused because of a format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tests.corpus.instances import instances
from tests.corpus.specs import FILES, rows
from tests.modules import documents, load_module
from toolkit.codegen.package.models import render_models
from toolkit.codegen.schema.document import RICH
from toolkit.errors import SetupError
from toolkit.runtime.arguments import Reader
from toolkit.schema import same_json

SAMPLE_EVERY = 8


def schemas_with_formats(corpus: Path) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{row['key']} {word}", row[word])
        for file in FILES
        for row in rows(corpus, file)
        for word in ("inputSchema", "outputSchema")
        if row.get(word) is not None and any(f'"format": "{name}"' in json.dumps(row[word]) for name in RICH)
    ]


def test_rich_formats_lose_nothing(corpus: Path, everything: bool) -> None:
    found = schemas_with_formats(corpus)
    judged = refused = typed = 0
    for key, schema in found if everything else found[::SAMPLE_EVERY]:
        try:
            inputs, outputs = documents({"type": "object"}, schema, rich_formats=True)
        except SetupError:
            continue
        source = render_models("x.json", "X", "", inputs, outputs)
        typed += any(name in source for name in RICH.values())
        reader = Reader(load_module(source).XOutput)
        for instance in instances(schema, key):
            try:
                value = reader.from_wire(instance.value)
            except ValidationError as error:
                if instance.verdict.accepted:
                    # In a union, the errors of other branches are listed as well.
                    assert "format" in {each["type"] for each in error.errors()}, (key, instance.value)
                    refused += 1
                continue
            assert instance.verdict.accepted, (key, instance.value)
            assert same_json(value.model_dump(mode="json", by_alias=True, exclude_unset=True), instance.value), key
            judged += 1
    assert typed and judged and refused
