"""How much text tells a model about its tools: as JSON definitions, as typed signatures, and as names to ask about.

Characters, so a run on another machine finds the same.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Final

from benchmarks import REPOSITORY
from benchmarks.results import Row, Table, by_curve, compared
from tests.corpus.project import SharedProject, SharedTool, shared_tools
from toolkit.adapters.openai_chat.codec import encode_tools
from toolkit.generated.catalog import CATALOG
from toolkit.runtime.catalog import Catalog, strip_marks
from toolkit.runtime.signatures import ToolSignature, prompt_text
from toolkit.wire.call import JsonObject
from toolkit.wire.definition import ToolDefinition

SIZES: Final = (100, 1000)
DEFINITIONS: Final = "definitions for OpenAI, JSON"
ARGUMENTS: Final = "signatures without the classes of outputs"
SIGNATURES: Final = "signatures"
ON_DEMAND: Final = "names, search_tools, describe_tools, and three tools in full"
ABOUT_TOOLS: Final = ("describe_tools", "search_tools")


def measure(*, full: bool) -> Iterator[Table]:
    names = [name for name, info in CATALOG.tools.items() if not info.must_be_named]
    yield Table("built in", f"Telling a model about the {len(names)} built-in tools", _compare(CATALOG, names))
    corpus = Path(os.environ.get("TOOLKIT_CORPUS") or REPOSITORY.parent / "shared" / "corpus")
    if full and corpus.is_dir():
        yield _by_tools(corpus)


def _by_tools(corpus: Path) -> Table:
    tools = shared_tools(corpus)
    rows: tuple[Row, ...] = ()
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            catalog = _generate(Path(folder), _spread(tools, size), f"shared_{size}")
            rows += _compare(catalog, list(catalog.tools), at=size)
    notes = ("Real tools of MCP servers, APIs and benchmarks; few of them describe their output.",)
    return Table("tools", "The same by number of tools", by_curve(rows), axis="tools", notes=notes)


def _spread(tools: Sequence[SharedTool], size: int) -> list[SharedTool]:
    step = len(tools) / size
    return [tools[int(index * step)] for index in range(size)]


def _generate(folder: Path, tools: Sequence[SharedTool], name: str) -> Catalog:
    project = SharedProject(folder, name, tools)
    project.generate()
    sys.path.insert(0, str(folder))
    try:
        catalog: Catalog = import_module(f"{project.package}.catalog").CATALOG
        assert catalog.definitions  # read while the files are there
    finally:
        sys.path.remove(str(folder))
    return catalog


def _compare(catalog: Catalog, names: Sequence[str], at: int | None = None) -> tuple[Row, ...]:
    signatures = [catalog.signatures.of(name) for name in names]
    found = {
        DEFINITIONS: len(json.dumps(encode_tools([_definition(catalog, name) for name in names]), ensure_ascii=False)),
        ARGUMENTS: len(prompt_text(map(_without_output, signatures))),
        SIGNATURES: len(prompt_text(signatures)),
        ON_DEMAND: _on_demand(signatures),
    }
    return compared({name: float(size) for name, size in found.items()}, DEFINITIONS, "characters", at=at)


def _on_demand(signatures: Sequence[ToolSignature]) -> int:
    """A prompt with every name and the two tools that tell more, then what a model reads about three of middle size."""
    about = json.dumps(encode_tools([_definition(CATALOG, name) for name in ABOUT_TOOLS]), ensure_ascii=False)
    by_size = sorted(signatures, key=lambda tool: len(prompt_text([tool])))
    middle = len(by_size) // 2
    names = "\n".join(tool.name for tool in signatures)
    return len(names) + len(about) + len(prompt_text(by_size[middle - 1 : middle + 2]))


def _without_output(tool: ToolSignature) -> ToolSignature:
    return replace(tool, output_types=())


def _definition(catalog: Catalog, name: str) -> ToolDefinition:
    row = catalog.definitions[name]
    text = row["longDescription"] or row["description"]
    return ToolDefinition(name, text, JsonObject(strip_marks(row["inputSchema"])))
