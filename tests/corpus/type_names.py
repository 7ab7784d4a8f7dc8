"""How the nested types of shared specs are named, and whether one of them is written twice."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tests.corpus.project import SharedTool
from toolkit.codegen.package.python_names import camel
from toolkit.codegen.schema.document import Document
from toolkit.codegen.schema.flatten import flatten
from toolkit.errors import SetupError, SpecError
from toolkit.schema.problems import Finding
from toolkit.schema.spec import ToolSpec
from toolkit.schema.spec_files import load_spec_text

DIGEST = re.compile(r"X[0-9a-f]{6,}(?![0-9a-z])")
GOAL_HASHES = 0.005
LONG = 60


@dataclass(frozen=True, slots=True)
class NestedTypes:
    """The nested types of one tool; a column of the report is the sum, or the maximum, of one of its properties."""

    names: tuple[str, ...]
    suffixes: tuple[str, ...]
    """The names without the tool's own."""
    repeated: int
    """Classes whose code another class of the same schema has, too."""

    @property
    def hashed(self) -> int:
        return sum(DIGEST.search(suffix) is not None for suffix in self.suffixes)

    @property
    def longest(self) -> int:
        return max(map(len, self.names), default=0)


def nested_types(tool: SharedTool) -> NestedTypes | None:
    """The nested types of a shared spec; None if it is refused. Nothing is rendered, so all specs take a few seconds."""
    try:
        return types_of_spec(load_spec_text(json.dumps(tool.definition), "row.json", None)[0])
    except SetupError:
        return None


def types_of_spec(spec: ToolSpec) -> NestedTypes:
    """The nested types of a tool, under its own name; mistakes of its schemas raise."""
    prefix = camel(spec.wire_name)
    inputs, problems = flatten(spec.input_schema, f"{prefix}Input", is_input=True)
    documents = [inputs]
    if spec.output_schema is not None:
        outputs, more = flatten(spec.output_schema, f"{prefix}Output")
        documents.append(outputs)
        problems += more
    if problems:
        raise SpecError([Finding(message, spec.source, pointer) for message, pointer in problems])
    return types_of_documents(documents)


def types_of_documents(documents: Sequence[Document]) -> NestedTypes:
    named = [(document.name, name) for document in documents for name in (*document.objects, *document.aliases)]
    return NestedTypes(
        tuple(name for _, name in named),
        tuple(name.removeprefix(root) for root, name in named),
        sum(map(_repeated, documents)),
    )


def _repeated(document: Document) -> int:
    """Classes with the same text, apart from their own names. Where larger classes are equal, so are the smallest in them."""
    texts = [json.dumps(node).replace(f'/{name}"', '/"') for name, node in document.objects.items()]
    return len(texts) - len(set(texts))
