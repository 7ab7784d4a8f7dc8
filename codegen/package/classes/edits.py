"""What datamodel-code-generator cannot express, edited into its text by position.

Wire names as aliases, ``Omissible`` for optional fields that refuse null, docstrings, defaults that are models, exact limits.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from toolkit.codegen.package import python_names
from toolkit.codegen.package.classes.source_text import Edit, SourceText
from toolkit.codegen.package.classes.tool_types import ToolTypes, render_model_default
from toolkit.codegen.package.formats import described
from toolkit.codegen.package.literals import TypeText
from toolkit.codegen.package.render.literal import docstring, literal, text_literal
from toolkit.codegen.schema.document import Document
from toolkit.codegen.schema.objects import DECLARED_BY_SOME
from toolkit.jsonschema.keywords import Schema


def edit_statement(statement: ast.stmt, name: str | None, tool: ToolTypes, source: SourceText) -> str:
    """The text of a statement after our edits; ``name`` is the class or alias it defines."""
    if isinstance(statement, ast.ClassDef):
        edits = list(_class_edits(statement, tool.nodes, source))
        if enforced := tool.roots.get(statement.name):
            end = source.span(statement)[1]
            edits.append((end, end, _render_enforced(enforced)))
        return source.edited(statement, edits)
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call) and name is not None:
        # X = TypeAliasType("X", T) -> X: TypeAlias = T, which pydantic resolves while it builds the class
        value = _with_exact_limits(source.text_of(statement.value.args[1]), tool.nodes[name])
        if name in tool.endless:
            return _render_endless(name, value, tool.nodes[name])
        if name in tool.roots:
            return _render_root(name, value, tool.nodes, tool.roots[name])
        return f"{name}: TypeAlias = {value}"
    return source.text_of(statement)


def _render_endless(name: str, value: str, node: Schema) -> str:
    """An alias that holds itself. Only pydantic's own kind can be read at run time; pyright reads only the plain kind.

    ``Exact``: the class around it does not see what is inside.
    """
    plain = TypeText(Document("", {}), name=str).render(node)
    return "\n".join(
        [
            "if TYPE_CHECKING:",
            f"    {name}: TypeAlias = {text_literal(plain)}",
            "else:",
            f'    {name} = TypeAliasType("{name}", Annotated[{_with_items(value, node)}, Exact()])',
        ]
    )


def _with_items(value: str, node: Schema) -> str:
    """The type of an array that holds itself: datamodel-code-generator writes ``list`` for it."""
    if node.get("type") != "array" or "list[" in value:
        return value
    items = TypeText(Document("", {}), name=str).render(node["items"])
    return re.sub(r"\blist\b", lambda _: f"list[{text_literal(items)}]", value, count=1)


def _render_root(name: str, value: str, nodes: Mapping[str, Schema], enforced: str | None) -> str:
    """The class for a schema whose root is not an object."""
    doc = docstring(nodes[name].get("description") or "The value is `root`.", "    ")
    return f"class {name}(ToolRootModel[{value}]):\n{doc}{_render_enforced(enforced) if enforced else ''}"


def _render_enforced(text: str) -> str:
    """The line that makes a class check values against its JSON Schema, too."""
    return f"\n    __enforced__: ClassVar[str] = {text_literal(text)}"


def _class_edits(node: ast.ClassDef, nodes: Mapping[str, Schema], source: SourceText) -> Iterator[Edit]:
    schema = nodes[node.name]
    yield _head_edit(node, schema.get("description"), source)
    names = {name: wire for wire, name in python_names.field_names(schema.get("properties", {})).items()}
    for field in node.body:
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        end = source.span(field)[1]
        if field.target.id == "__pydantic_extra__":
            # No effect at run time; without it, checkers would see an argument.
            yield end, end, " = Field(init=False)"
        elif field.target.id in names:
            wire = names[field.target.id]
            default = render_model_default(schema["properties"][wire], nodes)
            yield from _field_edits(field, wire, schema, default, source)
            if doc := described(schema["properties"][wire], nodes.get):
                yield end, end, "\n" + docstring(doc, "    ")


def _head_edit(node: ast.ClassDef, description: str | None, source: SourceText) -> Edit:
    """Replaces ``model_config`` by class keywords, and inserts the docstring."""
    start = source.span(node.bases[0])[1]
    first = node.body[0]
    config = first.value if isinstance(first, ast.Assign) and isinstance(first.value, ast.Call) else None
    fields = node.body[1:] if config is not None or isinstance(first, ast.Pass) else node.body
    given = config.keywords if config is not None else ()
    keywords = "".join(f", {word.arg}={literal(ast.literal_eval(word.value))}" for word in given)
    doc = "\n" + docstring(description, "    ") if description else "" if fields else "\n    pass"
    end = source.line_end_before(source.span(fields[0])[0]) if fields else source.span(node)[1]
    # A blank line between the docstring and the first field.
    return start, end, f"{keywords}):{doc}" + ("\n" if description and fields else "")


def _field_edits(
    field: ast.AnnAssign, wire: str, schema: Schema, model_default: str | None, source: SourceText
) -> Iterator[Edit]:
    assert isinstance(field.target, ast.Name)
    node = schema["properties"][wire]
    start, end = source.span(field.annotation)
    written = annotation = source.text(start, end)
    optional = wire not in schema.get("required", ()) and ("default" not in node or model_default is not None)
    if optional and not _takes_null(node) and DECLARED_BY_SOME not in node:
        annotation = _without_null(field.annotation, source, has_default=model_default is not None)
    annotation = _with_exact_limits(annotation, node)
    if DECLARED_BY_SOME in node:
        annotation = f"DeclaredBySome[{annotation}]"
    if field.target.id != wire:
        annotation = f"Annotated[{annotation}, Field(alias={text_literal(wire)})]"
    if annotation != written:
        yield start, end, annotation
    if model_default is not None and field.value is not None:
        yield (*source.span(field.value), model_default)


def _without_null(annotation: ast.expr, source: SourceText, *, has_default: bool) -> str:
    """``X | None`` -> ``Omissible[X]``, anywhere in the annotation; just ``X`` if there is a default."""
    start, end = source.span(annotation)
    for node in ast.walk(annotation):
        if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant) and node.right.value is None:
            inner = node.left
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "Optional":
            inner = node.slice
        else:
            continue
        whole_start, whole_end = source.span(node)
        kept = source.text_of(inner) if has_default else f"Omissible[{source.text_of(inner)}]"
        return source.text(start, whole_start) + kept + source.text(whole_end, end)
    return source.text(start, end)


def _with_exact_limits(annotation: str, node: Schema) -> str:
    """Integer limits of a number as in the spec: datamodel-code-generator writes floats, which round large ones."""
    for part in (node, *node.get("anyOf", ())):
        if part.get("type") != "number":
            continue
        for word, key in _LIMITS.items():
            if isinstance(part.get(word), int):
                annotation = re.sub(rf"\b{key}=[-+.\de]+", f"{key}={part[word]}", annotation)
    return annotation


_LIMITS = {
    "minimum": "ge",
    "exclusiveMinimum": "gt",
    "maximum": "le",
    "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
}


def _takes_null(node: Schema) -> bool:
    if "enum" in node:
        return None in node["enum"]
    if "anyOf" in node:
        return any(map(_takes_null, node["anyOf"]))
    return "$ref" not in node and node.get("type", "null") == "null"
