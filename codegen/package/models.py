"""The text of a tool's model module: its header, the imports it needs, its classes, the TypedDicts of its arguments.

The result must pass ``code_allow_list.check_module``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from toolkit.codegen.package.classes import ToolTypes, WrittenTexts, write_classes
from toolkit.codegen.package.literals import docstring
from toolkit.codegen.package.modules import OWN_OUTPUT_IMPORTS, render_own_output
from toolkit.codegen.package.rows import render_args
from toolkit.codegen.schema.document import RICH, Document
from toolkit.errors import GenerationError
from toolkit.schema.problems import Finding

# ----------------------------------------------------------------------------------------------------------------------
# The check after datamodel-code-generator: a model module may hold classes, aliases and literals, and nothing that runs.
#
# Even if a spec gets past the keyword table, it cannot put code into the module: a syntax node that is not in these
# lists stops generation.

_IMPORTS: Final[dict[str, frozenset[str]]] = {
    "typing": frozenset({"TYPE_CHECKING", "Annotated", "Any", "ClassVar", "Literal", "Optional", "TypeAlias", "Union"}),
    "typing_extensions": frozenset({"NotRequired", "TypeAliasType", "TypedDict"}),
    "pydantic": frozenset({"Field"}),
    "toolkit.generated_support": frozenset(
        {
            "ContentOutput",
            "DeclaredBySome",
            "Exact",
            "Omissible",
            "ToolModel",
            "ToolRootModel",
            "own_type",
            *RICH.values(),
        }
    ),
}
_BASES: Final = frozenset({"ToolModel", "ToolRootModel", "ContentOutput", "TypedDict"})
_CALLS: Final = frozenset({"Exact", "Field", "TypeAliasType", "TypedDict"})
_METHODS: Final = frozenset({"model_rebuild", "model_validate"})
_LITERALS: Final = frozenset({ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.UnaryOp, ast.USub, ast.Load})
_TYPE_NODES: Final = _LITERALS | {ast.Name, ast.Subscript, ast.BinOp, ast.BitOr, ast.Call, ast.keyword}


def check_module(source: str, path: str) -> ast.Module:
    """The parsed module, if it holds only what a model module may hold; else ``GenerationError``."""
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise GenerationError(f"{path}: the generated module is not valid Python: {error}") from None
    for statement in module.body:
        if not _is_allowed(statement):
            raise GenerationError(
                f"{path}: the generated module contains a statement that models do not need (line {statement.lineno}:"
                f" {type(statement).__name__}), so the spec is refused"
            )
    return module


def _is_allowed(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        names = _IMPORTS.get(node.module or "", frozenset())
        return node.level == 0 and all(alias.name in names and alias.asname is None for alias in node.names)
    if isinstance(node, ast.ClassDef):
        return _is_allowed_class(node)
    if isinstance(node, ast.If):
        # What holds itself is written once for checkers and once for pydantic.
        is_for_checkers = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return is_for_checkers and all(map(_is_alias, (*node.body, *node.orelse)))
    return _is_alias(node) or _is_text(node) or isinstance(node, ast.Expr) and _is_method_call(node.value)


def _is_alias(node: ast.stmt) -> bool:
    if isinstance(node, ast.AnnAssign):
        return _is_type(node.annotation) and node.value is not None and _is_type(node.value)
    if isinstance(node, ast.Assign):
        return isinstance(node.value, ast.Call) and _is_type(node.value)
    return False


def _is_allowed_class(node: ast.ClassDef) -> bool:
    bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
    named = all(isinstance(base, ast.Name) and base.id in _BASES for base in bases)
    plain = not node.decorator_list and all(isinstance(word.value, ast.Constant) for word in node.keywords)
    return named and plain and all(map(_is_type, node.bases)) and all(map(_is_allowed_member, node.body))


def _is_allowed_member(node: ast.stmt) -> bool:
    if isinstance(node, ast.AnnAssign):
        value = node.value
        return _is_type(node.annotation) and (value is None or _is_default(value) or _is_extra_type(node))
    return isinstance(node, ast.Pass) or _is_text(node)


def _is_extra_type(node: ast.AnnAssign) -> bool:
    """The type of additional properties, which checkers must not see as an argument."""
    return ast.unparse(node.target) == "__pydantic_extra__" and ast.unparse(node.value or node) == "Field(init=False)"


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_literal(node: ast.expr) -> bool:
    return all(type(part) in _LITERALS for part in _list_parts(node))


def _is_default(node: ast.expr) -> bool:
    """A literal, a model made from one, or a list or map of these."""
    if isinstance(node, ast.List):
        return all(map(_is_default, node.elts))
    if isinstance(node, ast.Dict):
        return all(key is not None and _is_literal(key) for key in node.keys) and all(map(_is_default, node.values))
    return _is_literal(node) or _is_method_call(node)


def _is_type(node: ast.expr) -> bool:
    for part in _list_parts(node):
        if type(part) not in _TYPE_NODES:
            return False
        if isinstance(part, ast.Call) and not (isinstance(part.func, ast.Name) and part.func.id in _CALLS):
            return False
    return True


def _list_parts(node: ast.expr) -> list[ast.AST]:
    """The node and all nodes below it, as ``ast.walk`` finds them in twice the time."""
    parts: list[ast.AST] = [node]
    for part in parts:
        for name in part._fields:
            value = getattr(part, name, None)
            if isinstance(value, list):
                parts += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST):
                parts.append(value)
    return parts


def _is_method_call(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _METHODS
        and isinstance(node.func.value, ast.Name)
        and not node.keywords
        and all(map(_is_literal, node.args))
    )


_IMPORTED: Final = {
    "typing": ("TYPE_CHECKING", "Annotated", "Any", "ClassVar", "Literal", "Optional", "TypeAlias", "Union"),
    "pydantic": ("Field",),
    "typing_extensions": ("NotRequired", "TypeAliasType", "TypedDict"),
    "toolkit.generated_support": (
        "ContentOutput",
        "DeclaredBySome",
        "Exact",
        "Omissible",
        "ToolModel",
        "ToolRootModel",
        "own_type",
        *sorted(RICH.values()),
    ),
}
_IMPORTABLE: Final = frozenset(name for names in _IMPORTED.values() for name in names)
_STRINGS: Final = re.compile(r'"""(?:[^\\]|\\.)*?"""|"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'', re.DOTALL)


@dataclass(frozen=True, slots=True)
class RenderJob:
    """One model module to render."""

    source: str
    prefix: str
    description: str
    """The tool's: it says what the input is for."""
    inputs: Document
    outputs: Document | None
    own_output: Mapping[str, Any] | None = None
    """The type that the output has instead of a generated one, as in a row."""


def render_models(source: str, prefix: str, description: str, inputs: Document, outputs: Document | None) -> str:
    """The text of ``models/<tool>.py``: ``<prefix>Input``, ``<prefix>Output``, ``<prefix>Args`` and their nested types."""
    return render_many([RenderJob(source, prefix, description, inputs, outputs)])[0]


def render_many(jobs: Sequence[RenderJob], written: WrittenTexts | None = None) -> list[str]:
    """The texts of some modules, each as ``render_models`` gives it; together they cost about half.

    ``written`` holds what datamodel-code-generator wrote earlier, and gets what it writes now.
    """
    written = {} if written is None else written
    try:
        classes = write_classes([ToolTypes.of(_documents(job)) for job in jobs], written)
        return [_render_module(job, text) for job, text in zip(jobs, classes, strict=True)]
    except Exception as error:
        if len(jobs) > 1:
            # One by one, so that the mistake of one tool is reported as its own.
            return [text for job in jobs for text in render_many([job], written)]
        if isinstance(error, RecursionError):
            raise GenerationError(
                [Finding(f"the types of {jobs[0].prefix!r} are nested too deeply for Python", jobs[0].source)]
            ) from None
        raise


def _documents(job: RenderJob) -> list[Document]:
    inputs = job.inputs
    if job.description.strip():
        inputs = replace(inputs, root={**inputs.root, "description": job.description})
    return [inputs] if job.outputs is None else [inputs, job.outputs]


def _render_module(job: RenderJob, classes: str) -> str:
    own = "" if job.own_output is None else render_own_output(f"{job.prefix}Output", job.own_output)
    content = [_render_content_output(job.prefix)] if job.outputs is None and not own else []
    body = "\n\n\n".join([classes, *content, render_args(job.inputs, job.prefix)])
    # Each part is checked by itself: what all allow, the whole module allows.
    code = check_module(f"{body}\n", job.source)
    used = _find_imported(body, code).union(OWN_OUTPUT_IMPORTS if own else ())
    head = "\n".join([header(job.source), "", _render_imports(used), "", "", ""])
    check_module(head, job.source)
    return f"{head}{body}\n{own}"


def header(source: str) -> str:
    """The first line of a model module. The name of the spec file is escaped: it may hold any character."""
    name = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in source)
    return docstring(f"Generated by typed-toolkit from {name}. Do not edit: run `toolkit generate`.", "")


def _render_content_output(prefix: str) -> str:
    doc = docstring("What the tool returned; its spec declares no output schema.", "    ")
    return f"class {prefix}Output(ContentOutput):\n{doc}"


def _render_imports(used: frozenset[str]) -> str:
    lines = []
    for module, names in _IMPORTED.items():
        present = [name for name in names if name in used]
        if present:
            lines.append(f"from {module} import {', '.join(present)}")
    groups = [[line for line in lines if line.startswith("from typing import")], lines]
    groups[1] = [line for line in lines if line not in groups[0] and not line.startswith("from toolkit.")]
    groups.append([line for line in lines if line.startswith("from toolkit.")])
    return "\n\n".join("\n".join(group) for group in groups if group)


def _find_imported(body: str, code: ast.Module) -> frozenset[str]:
    """Those of the names that a module may import that this one uses."""
    outside = _IMPORTABLE.intersection(re.findall(r"\w+", _STRINGS.sub('""', body)))
    inside = _IMPORTABLE.intersection(re.findall(r"\w+", body)) - outside
    # A string may be a quoted type or prose. Only the syntax tree shows which, and walking it is slow.
    return outside | (inside.intersection(_used_names(code)) if inside else frozenset())


def _used_names(code: ast.AST) -> Iterator[str]:
    """The names in code, also those inside quoted types; the texts of a ``Literal`` are not types."""
    for node in ast.walk(code):
        if isinstance(node, ast.Name):
            yield node.id
        for part in _quoted_types(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield from _used_names(ast.parse(part.value, mode="eval"))


def _quoted_types(node: ast.AST) -> Sequence[ast.expr | None]:
    """What may be a quoted type in a node: arguments of a type, an annotation, the value of an alias."""
    if isinstance(node, ast.Subscript):
        is_literal = isinstance(node.value, ast.Name) and node.value.id == "Literal"
        return () if is_literal else node.slice.elts if isinstance(node.slice, ast.Tuple) else (node.slice,)
    if isinstance(node, ast.AnnAssign):
        is_alias = isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias"
        return (node.value,) if is_alias else (node.annotation,)
    return ()
