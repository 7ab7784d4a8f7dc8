"""The only caller of datamodel-code-generator.

Half of the cost of a run is fixed, so several tools share one. The classes of a tool come out as if it had a run of its own:
tools of one run have no name in common, and those whose types lead back to themselves run alone, because the order of such
classes depends on what else is in the run.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from toolkit.codegen.package.classes.edits import edit_statement
from toolkit.codegen.package.classes.source_text import SourceText
from toolkit.codegen.package.classes.tool_types import ToolTypes
from toolkit.errors import GenerationError

if TYPE_CHECKING:
    from datamodel_code_generator.config import GenerateConfig

_MAX_CLASSES: Final = 100
"""In a shared run. From about 20 on, more make a run no cheaper for each; from 1,000 on it gets more expensive."""

WrittenTexts: TypeAlias = MutableMapping[str, str]
"""What datamodel-code-generator wrote for a tool, by the digest of what it was given."""
_Piece: TypeAlias = tuple[str, ast.stmt]
"""A statement, and the text between it and the one before."""


OPTIONS: Final = {
    "input_file_type": "jsonschema",
    "output_model_type": "pydantic_v2.BaseModel",
    "target_python_version": "3.11",
    "base_class": "toolkit.generated_support.ToolModel",
    "formatters": ["builtin"],
    "builtin_format_line_length": 120,
    "enum_field_as_literal": "all",
    "disable_future_imports": True,
    "disable_timestamp": True,
    "field_constraints": True,
    "skip_root_model": True,
    "strict_nullable": True,
    "use_annotated": True,
    "use_double_quotes": True,
    "use_type_alias": True,
}
"""All options of datamodel-code-generator, by the names and values of its command line."""


@lru_cache(maxsize=1)
def _config() -> GenerateConfig:
    """Imported here, because importing it takes a third of a second."""
    from datamodel_code_generator.config import GenerateConfig

    return GenerateConfig.model_validate(OPTIONS)


def write_classes(tools: Sequence[ToolTypes], written: WrittenTexts) -> list[str]:
    """The source of each tool's classes and aliases, without imports. What was written before is not written again."""
    texts = [""] * len(tools)
    keys = [tool.digest() for tool in tools]
    missing = []
    for index, (key, tool) in enumerate(zip(keys, tools, strict=True)):
        if key in written:
            source = SourceText(written[key])
            texts[index] = _edit(_pieces(source.module.body, source), tool, source)
        else:
            missing.append(index)
    for run in _share_runs(tools, missing):
        source, pieces = _run([tools[index] for index in run])
        for index, some in zip(run, pieces, strict=True):
            texts[index] = _edit(some, tools[index], source)
            written[keys[index]] = "".join(gap + source.text_of(statement) for gap, statement in some)
    return texts


def _edit(pieces: Iterable[_Piece], tool: ToolTypes, source: SourceText) -> str:
    edited = [gap + edit_statement(statement, _defined_by(statement), tool, source) for gap, statement in pieces]
    return "".join(edited).strip()


def _share_runs(tools: Sequence[ToolTypes], missing: Sequence[int]) -> Iterator[list[int]]:
    """The positions of the tools that may be in one run."""
    run: list[int] = []
    taken: set[str] = set()
    for index in missing:
        tool = tools[index]
        if tool.is_recursive:
            yield [index]
            continue
        if run and (not taken.isdisjoint(tool.nodes) or len(taken) + len(tool.nodes) > _MAX_CLASSES):
            yield run
            run, taken = [], set()
        run.append(index)
        taken.update(tool.nodes)
    if run:
        yield run


def _run(tools: Sequence[ToolTypes]) -> tuple[SourceText, list[list[_Piece]]]:
    """What one run writes for some tools, and which pieces of it are the classes of each."""
    from datamodel_code_generator import generate

    schemas = {name: schema for tool in tools for name, schema in tool.plain_schemas.items()}
    # Named, so that datamodel-code-generator refers to them; our own types take the place of these. They are last, so that
    # the order of a tool's classes does not depend on which tool names one first.
    rich = {name: {"type": "string"} for tool in tools for name in sorted(tool.rich)}
    text = generate(json.dumps({"$defs": {**schemas, **rich}}), config=_config())
    if not isinstance(text, str):
        raise TypeError("datamodel-code-generator returned several modules for one document")
    source = SourceText(text)
    statements = [node for node in source.module.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    defined = {name for statement in statements if (name := _defined_by(statement)) is not None}
    if defined != {*schemas, *rich}:
        raise GenerationError(
            f"datamodel-code-generator did not return the expected classes: {sorted(defined ^ {*schemas, *rich})}"
        )
    owners = {name: index for index, tool in enumerate(tools) for name in tool.nodes}
    pieces: list[list[_Piece]] = [[] for _ in tools]
    for gap, statement in _pieces(statements, source):
        name = _defined_by(statement)
        if name in rich:
            continue
        if name is None and len(tools) > 1:
            raise GenerationError("datamodel-code-generator wrote a statement that may be of any tool in the run")
        own = pieces[0 if name is None else owners[name]]
        own.append((gap if own else "", statement))
    return source, pieces


def _pieces(statements: Iterable[ast.stmt], source: SourceText) -> Iterator[_Piece]:
    end = 0
    for statement in statements:
        gap_start = end
        start, end = source.span(statement)
        yield source.text(gap_start, start), statement


def _defined_by(statement: ast.stmt) -> str | None:
    """The name of a class or an alias."""
    match statement:
        case ast.ClassDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return None
