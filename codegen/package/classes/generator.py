"""The only caller of datamodel-code-generator.

Half of the cost of a run is fixed, so several tools share one. The classes of a tool come out as if it had a run of its own:
tools of one run have no name in common, and those whose types lead back to themselves run alone, because the order of such
classes depends on what else is in the run.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from toolkit.codegen.package.classes.edits import edit_statement
from toolkit.codegen.package.classes.source_text import SourceText
from toolkit.codegen.package.classes.tool_types import ToolTypes
from toolkit.errors import GenerationError

if TYPE_CHECKING:
    from datamodel_code_generator.config import GenerateConfig

_MAX_CLASSES: Final = 100
"""In a shared run. From about 20 on, more make a run no cheaper for each; from 1,000 on it gets more expensive."""


@lru_cache(maxsize=1)
def _options() -> GenerateConfig:
    """All options of datamodel-code-generator. Imported here, because importing it takes a third of a second."""
    from datamodel_code_generator import Formatter, InputFileType, LiteralType, PythonVersion
    from datamodel_code_generator.config import GenerateConfig
    from datamodel_code_generator.enums import DataModelType

    return GenerateConfig(
        input_file_type=InputFileType.JsonSchema,
        output_model_type=DataModelType.PydanticV2BaseModel,
        target_python_version=PythonVersion.PY_311,
        base_class="toolkit.generated_support.ToolModel",
        formatters=[Formatter.BUILTIN],
        builtin_format_line_length=120,
        enum_field_as_literal=LiteralType.All,
        disable_future_imports=True,
        disable_timestamp=True,
        field_constraints=True,
        skip_root_model=True,
        strict_nullable=True,
        use_annotated=True,
        use_double_quotes=True,
        use_type_alias=True,
    )


def write_classes(tools: Sequence[ToolTypes]) -> list[str]:
    """The source of each tool's classes and aliases, without imports."""
    texts = [""] * len(tools)
    for run in _share_runs(tools):
        for index, text in zip(run, _run([tools[index] for index in run]), strict=True):
            texts[index] = text
    return texts


def _share_runs(tools: Sequence[ToolTypes]) -> Iterator[list[int]]:
    """The positions of the tools that may be in one run."""
    run: list[int] = []
    taken: set[str] = set()
    for index, tool in enumerate(tools):
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


def _run(tools: Sequence[ToolTypes]) -> list[str]:
    """The classes of some tools, by one run."""
    from datamodel_code_generator import generate

    schemas = {name: schema for tool in tools for name, schema in tool.plain_schemas().items()}
    # Named, so that datamodel-code-generator refers to them; our own types take the place of these. They are last, so that
    # the order of a tool's classes does not depend on which tool names one first.
    rich = {name: {"type": "string"} for tool in tools for name in sorted(tool.rich)}
    text = generate(json.dumps({"$defs": {**schemas, **rich}}), config=_options())
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
    pieces: list[list[str]] = [[] for _ in tools]
    end = 0
    for statement in statements:
        name, gap_start = _defined_by(statement), end
        start, end = source.span(statement)
        if name in rich:
            continue
        if name is None and len(tools) > 1:
            raise GenerationError("datamodel-code-generator wrote a statement that may be of any tool in the run")
        index = 0 if name is None else owners[name]
        gap = source.text(gap_start, start) if pieces[index] else ""
        pieces[index] += [gap, edit_statement(statement, name, tools[index], source)]
    return ["".join(piece).strip() for piece in pieces]


def _defined_by(statement: ast.stmt) -> str | None:
    """The name of a class or an alias."""
    match statement:
        case ast.ClassDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return None
